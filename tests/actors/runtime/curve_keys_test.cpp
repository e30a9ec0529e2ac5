// Who gets into an encrypted channel, and who does not. 0.0.0.0 stands for an address that other
// hosts can reach; nothing leaves this one.
#include "actors/runtime/curve_keys.hpp"

#include <fstream>

#include "actors/runtime/zmq_context.hpp"
#include "tests/actors/runtime/certificate_fixture.hpp"
#include "tests/actors/runtime/channel_support.hpp"

namespace troupe::actors {
namespace {

using testing::HasSubstr;

class CurveTest : public CertificateTest {
 protected:
  std::shared_ptr<const CurveKeys> keys(const std::string& role,
                                        const std::string& cluster = "cluster") {
    auto loaded =
        load_curve_keys(bundle({.name = "host", .addresses = {}, .roles = {role}}, cluster));
    if (!loaded) throw std::runtime_error(loaded.error().message);
    return std::make_shared<const CurveKeys>(std::move(*loaded));
  }

  // Encrypted although the address it is reached at is loopback.
  std::string endpoint() const {
    const std::string bound = server_->endpoint();
    return "tcp://0.0.0.0" + bound.substr(bound.rfind(':'));
  }

  bool gets_in(std::shared_ptr<const CurveKeys> own) {
    auto client = take(open_channel_client(endpoint(), "peer", {.curve = std::move(own)}));
    const auto deadline = std::chrono::steady_clock::now() + 1s;
    while (std::chrono::steady_clock::now() < deadline) {
      (void)client->send({42, bytes(10)});
      if (server_->receive(5ms)) return true;
    }
    return false;
  }

  const std::shared_ptr<const CurveKeys> worker_ = keys(kWorkerRole);
  std::unique_ptr<ChannelServer> server_ =
      take(open_channel_server("tcp://0.0.0.0:*", {.max_message_bytes = 1000, .curve = worker_}));
};

TEST_F(CurveTest, WorkersGetIn) {
  EXPECT_TRUE(gets_in(worker_));
  EXPECT_TRUE(gets_in(keys(kCoordinatorRole)));
}

TEST_F(CurveTest, NeitherPlainTextNorWatchersNorOtherClustersGetIn) {
  EXPECT_FALSE(gets_in(nullptr));
  EXPECT_FALSE(gets_in(keys(kWatchRole)));
  must(init_authority(path("other"), "other", std::chrono::hours(1)));
  const auto foreign = keys(kWorkerRole, "other");
  EXPECT_FALSE(gets_in(foreign));
  // Who knows the server's key, but has none of the cluster's own.
  CurveKeys own = *foreign;
  own.worker = worker_->worker;
  EXPECT_FALSE(gets_in(std::make_shared<const CurveKeys>(own)));
  EXPECT_TRUE(gets_in(worker_)) << "and the others go on";
  EXPECT_EQ(server_->dropped(), 0u);
}

// Nobody who poses as a server gets anything from a client.
TEST_F(CurveTest, AClientTrustsWorkersOnly) {
  must(init_authority(path("other"), "other", std::chrono::hours(1)));
  server_ = take(open_channel_server("tcp://0.0.0.0:*", {.curve = keys(kWorkerRole, "other")}));
  EXPECT_FALSE(gets_in(worker_));
  server_ = take(open_channel_server("tcp://0.0.0.0:*", {.curve = nullptr}));
  EXPECT_FALSE(gets_in(worker_));
}

TEST_F(CurveTest, LoopbackStaysPlain) {
  server_ = take(open_channel_server("tcp://127.0.0.1:*", {.curve = worker_}));
  auto client = take(open_channel_client(server_->endpoint(), "peer", {.curve = nullptr}));
  EXPECT_TRUE(eventually([&] { return client->send({1, bytes(1)}).has_value(); }));
  EXPECT_TRUE(server_->receive(kPatience).has_value());
}

TEST_F(CurveTest, TheProcesssKeysAreTheDefault) {
  set_process_curve_keys(worker_);
  EXPECT_EQ(ChannelLimits{}.curve, worker_);
  set_process_curve_keys(nullptr);
  EXPECT_EQ(ChannelLimits{}.curve, nullptr);
}

TEST_F(CurveTest, KeysOfTwoClustersOrJunkAreRefusedByName) {
  const auto made = bundle({.name = "host", .addresses = {}});
  const auto spoil = [&](const char* file, const std::string& text) {
    std::ofstream(made / file) << text;
    return load_curve_keys(made).error().message;
  };
  EXPECT_THAT(spoil(kCurveKey, new_curve_pair().secret_key), HasSubstr("another cluster"));
  EXPECT_THAT(spoil(kCurvePublicFile, "worker x"), HasSubstr("keys of workers and watchers"));
}

}  // namespace
}  // namespace troupe::actors
