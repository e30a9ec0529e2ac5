// The service over an in-process channel: one thread plays the client and turns the service.
#include "actors/service/replay_service.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "replay/bytes.hpp"
#include "replay/codec.hpp"

namespace troupe::actors {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using testing::HasSubstr;

class ReplayServiceTest : public testing::Test {
 protected:
  void SetUp() override {
    ServiceOptions options;
    options.endpoint = "inproc://replay-service-test";
    options.credit = 2;
    auto opened = ReplayService::open(options);
    ASSERT_TRUE(opened) << opened.error().message;
    service_ = *std::move(opened);
    client_ = open_channel_client(service_->endpoint(), "client").value();
    declare(
        {{"capacity", 100}, {"min_size", 2}, {"samples_per_insert", 1.0}, {"error_buffer", 4.0}});
  }

  // Sends and returns the number of the request.
  std::uint64_t send(ServiceKind kind, const Bytes& body) {
    Bytes bytes;
    replay::ByteWriter out(bytes);
    out.put(kServiceMagic);
    out.put(kServiceVersion);
    out.put(std::uint16_t{0});
    out.put(++number_);
    out.bytes(body.data(), body.size());
    EXPECT_TRUE(client_->send(
        {static_cast<std::uint8_t>(kind), std::make_shared<const Bytes>(std::move(bytes))}));
    service_->serve(milliseconds{0});
    return number_;
  }

  struct Reply {
    std::uint8_t kind = 0;
    std::uint64_t id = 0;
    Bytes body;
    std::uint32_t error() const {
      std::uint32_t code = 0;
      if (kind == kServiceError && body.size() >= 4) std::memcpy(&code, body.data(), 4);
      return code;
    }
    std::string text() const { return {body.begin(), body.end()}; }
  };
  std::optional<Reply> receive() {
    const auto message = client_->receive(milliseconds{0});
    if (!message) return std::nullopt;
    Reply reply{message->kind, 0, {}};
    std::memcpy(&reply.id, message->payload->data() + 8, 8);
    reply.body.assign(message->payload->begin() + kServiceHeader, message->payload->end());
    return reply;
  }

  void declare(const json& options) {
    signature_ = {{{"o", DType::kF32, {2}}}, {{"action", DType::kF32, {1}}}, 0};
    const json request{{"name", "t"},
                       {"observation", columns_json(signature_.observation)},
                       {"step", columns_json(signature_.step)},
                       {"options", options}};
    const std::string text = request.dump();
    send(ServiceKind::kTable, Bytes(text.begin(), text.end()));
    const auto reply = receive();
    ASSERT_TRUE(reply);
    ASSERT_EQ(reply->kind, 0x82) << reply->text();
    const json answer = json::parse(reply->text());
    signature_.spec_hash = std::stoull(answer["spec_hash"].get<std::string>());
    table_ = answer["id"].get<std::uint32_t>();
  }

  Bytes chunk(std::uint64_t sequence, std::uint32_t steps) {
    replay::Chunk chunk;
    chunk.header = {.worker = 1,
                    .sequence = sequence,
                    .episode = sequence,
                    .steps = steps,
                    .end = replay::EpisodeEnd::kTerminated,
                    .spec_hash = signature_.spec_hash};
    chunk.observation = {Bytes((steps + 1) * 8)};
    chunk.step = {Bytes(steps * 4)};
    chunk.reward.assign(steps, 1.0F);
    Bytes body = words({table_, 0});  // no flags
    const Bytes encoded = replay::encode(chunk, signature_);
    body.insert(body.end(), encoded.begin(), encoded.end());
    return body;
  }

  static Bytes words(std::initializer_list<std::uint32_t> values) {
    Bytes bytes;
    replay::ByteWriter out(bytes);
    for (const std::uint32_t value : values) out.put(value);
    return bytes;
  }

  std::unique_ptr<ReplayService> service_;
  std::unique_ptr<ChannelClient> client_;
  replay::Signature signature_;
  std::uint64_t number_ = 0;
  std::uint32_t table_ = 0;
};

TEST_F(ReplayServiceTest, AChunkIsTakenOnceHoweverOftenItIsSent) {
  const Bytes body = chunk(0, 2);
  for (const std::uint64_t before : {0U, 1U}) {
    const auto number = send(ServiceKind::kInsert, body);
    const auto reply = receive();
    ASSERT_TRUE(reply);
    EXPECT_EQ(reply->id, number);
    ASSERT_EQ(reply->body.size(), 16U) << reply->text();
    EXPECT_EQ(reply->body[0], before);
    EXPECT_EQ(reply->body[8], before == 0 ? 2 : 0);
  }
  EXPECT_EQ(service_->info()["tables"][0]["inserted_steps"], 2);
}

TEST_F(ReplayServiceTest, AHeldBackChunkIsAnsweredOnceSamplesLetItPass) {
  send(ServiceKind::kInsert, chunk(0, 6));  // the cursor is at 6 = max_diff
  ASSERT_TRUE(receive());
  const auto held = send(ServiceKind::kInsert, chunk(1, 3));
  EXPECT_FALSE(receive());
  EXPECT_THAT(service_->info()["tables"][0]["insert_block_reason"].get<std::string>(),
              HasSubstr("insert"));
  // Sent again under another number it still waits once, and only that number is answered.
  const auto again = send(ServiceKind::kInsert, chunk(1, 3));
  EXPECT_EQ(service_->info()["tables"][0]["waiting_inserts"], 1);
  EXPECT_NE(held, again);
  send(ServiceKind::kSample, words({table_, 4, 1000}));
  const auto batch = receive();
  ASSERT_TRUE(batch);
  const auto first = batch->kind == 0x84 ? receive() : batch;
  ASSERT_TRUE(first);
  EXPECT_EQ(first->id, again);
  EXPECT_EQ(service_->info()["tables"][0]["inserted_steps"], 9);
}

TEST_F(ReplayServiceTest, RequestsBeyondCreditAreRefusedAndLaterOnesServed) {
  for (int i = 0; i < 2; ++i) send(ServiceKind::kSample, words({table_, 1, 60000}));
  EXPECT_FALSE(receive());
  send(ServiceKind::kSample, words({table_, 1, 60000}));
  auto refused = receive();
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->error(), static_cast<std::uint32_t>(ServiceErrorCode::kOverCredit));
  EXPECT_EQ(service_->info()["over_credit"], 1);
}

TEST_F(ReplayServiceTest, ASampleThatMayNotWaitIsAnsweredWithTheLimitersReason) {
  send(ServiceKind::kSample, words({table_, 1, 0}));
  const auto reply = receive();
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->error(), static_cast<std::uint32_t>(ServiceErrorCode::kTimeout));
  EXPECT_THAT(reply->text(), HasSubstr("min_size"));
}

TEST_F(ReplayServiceTest, EveryTruncatedBodyIsAnErrorAndChangesNothing) {
  const Bytes insert = chunk(0, 2);
  for (std::size_t cut = 0; cut < insert.size(); ++cut) {
    send(ServiceKind::kInsert, Bytes(insert.begin(), insert.begin() + static_cast<long>(cut)));
    const auto reply = receive();
    ASSERT_TRUE(reply) << cut;
    EXPECT_EQ(reply->kind, kServiceError) << cut;
  }
  for (const auto kind : {ServiceKind::kSample, ServiceKind::kPriorities, ServiceKind::kInfo,
                          ServiceKind::kCheckpoint, ServiceKind::kEndWriter, ServiceKind::kMemory,
                          ServiceKind::kTable}) {
    send(kind, Bytes(3, 0xff));
    const auto reply = receive();
    ASSERT_TRUE(reply);
    EXPECT_EQ(reply->error(), static_cast<std::uint32_t>(ServiceErrorCode::kMalformed));
  }
  EXPECT_EQ(service_->info()["tables"][0]["inserted_steps"], 0);
  EXPECT_EQ(service_->info()["malformed"], insert.size() + 7);
}

TEST(ServiceEndpoint, OnlyWhatThisHostAloneReachesIsLoopback) {
  for (const char* endpoint : {"tcp://127.0.0.1:5", "tcp://127.1.2.3:*", "tcp://localhost:5",
                               "tcp://[::1]:5", "ipc:///tmp/x", "inproc://x"})
    EXPECT_TRUE(is_loopback(endpoint)) << endpoint;
  for (const char* endpoint : {"tcp://*:5", "tcp://0.0.0.0:5", "tcp://192.168.1.1:5",
                               "tcp://eth0:5", "tcp://127.example.org:5", "tcp://[::]:5"}) {
    EXPECT_FALSE(is_loopback(endpoint)) << endpoint;
    ServiceOptions options;
    options.endpoint = endpoint;
    const auto opened = ReplayService::open(options);
    ASSERT_FALSE(opened);
    EXPECT_THAT(opened.error().message, HasSubstr("--insecure"));
  }
}

}  // namespace
}  // namespace troupe::actors
