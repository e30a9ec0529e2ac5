// The way to parameter servers: servers that come, go and fall silent, and what is no message.
#include "actors/roles/update_link.hpp"

#include <gtest/gtest.h>

#include <thread>

#include "tests/actors/roles/data_plane.hpp"

namespace troupe::actors {
namespace {

using namespace testing;

const ChannelLimits kLimits{.max_message_bytes = 1 << 16, .high_water_mark = 32};

// Answers each request with its bytes, reversed.
class Echo {
 public:
  explicit Echo(const std::string& endpoint)
      : channel_(open_channel_server(endpoint, kLimits).value()),
        endpoint_(channel_->endpoint()),
        thread_([this](const std::stop_token& stop) {
          while (!stop.stop_requested())
            if (const auto received = channel_->receive(milliseconds{5})) {
              const auto request = read_update_message(received->message);
              if (!request || silent) continue;
              const Bytes reversed(request->bytes.rbegin(), request->bytes.rend());
              // What answers another request comes first.
              (void)channel_->send(
                  received->peer, update_message(DataKind::kUpdateAnswer, request->number + 7, {}));
              (void)channel_->send(received->peer, update_message(DataKind::kUpdateAnswer,
                                                                  request->number, reversed));
            }
        }) {}
  const std::string& endpoint() const { return endpoint_; }
  std::atomic<bool> silent{false};

 private:
  std::unique_ptr<ChannelServer> channel_;
  std::string endpoint_;
  std::jthread thread_;
};

TEST(UpdateLink, FindsItsServerWhereverThatIs) {
  for (const std::string scheme : {"inproc", "tcp"}) {
    const auto address = [&] {
      return scheme == "tcp" ? std::string("tcp://127.0.0.1:*") : unique_endpoint();
    };
    UpdateLink link("learner-0.1", kLimits);
    const Bytes request = {1, 2, 3};
    const auto nowhere = link.ask(request, milliseconds{1000});
    ASSERT_FALSE(nowhere);
    EXPECT_EQ(nowhere.error().code, ErrorCode::kUnavailable);
    for (int i = 0; i < 3; ++i) {
      Echo server(address());
      link.set_endpoint(server.endpoint());
      for (int k = 0; k < 3; ++k) EXPECT_EQ(link.ask(request, kPatience).value(), (Bytes{3, 2, 1}));
    }
  }
}

TEST(UpdateLink, WaitsNoLongerThanItMayForOneThatIsSilentOrGone) {
  Echo server(unique_endpoint());
  server.silent = true;
  UpdateLink link("learner-0.1", kLimits);
  link.set_endpoint(server.endpoint());
  const auto silent = link.ask(Bytes{1}, milliseconds{30});
  ASSERT_FALSE(silent);
  EXPECT_EQ(silent.error().code, ErrorCode::kTimeout);
  const std::jthread gone([&] {
    std::this_thread::sleep_for(milliseconds{30});
    link.set_endpoint("");
  });
  const auto lost = link.ask(Bytes{1}, kPatience);
  ASSERT_FALSE(lost);
  EXPECT_EQ(lost.error().code, ErrorCode::kUnavailable);
}

TEST(UpdateMessages, AreNothingElse) {
  EXPECT_FALSE(read_update_message({static_cast<std::uint8_t>(DataKind::kUpdate), nullptr}));
  EXPECT_FALSE(read_update_message(
      {static_cast<std::uint8_t>(DataKind::kUpdate), std::make_shared<Bytes>(7)}));
  EXPECT_FALSE(read_update_message(words_message<1>(DataKind::kGrant, {1})));
  const ChannelMessage message = update_message(DataKind::kUpdate, 9, Bytes{1, 2});
  const auto read = read_update_message(message);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->number, 9U);
  EXPECT_EQ(Bytes(read->bytes.begin(), read->bytes.end()), (Bytes{1, 2}));
  EXPECT_TRUE(read_update_message(update_message(DataKind::kUpdate, 1, {}))->bytes.empty());
}

}  // namespace
}  // namespace troupe::actors
