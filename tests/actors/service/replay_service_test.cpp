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
    table_ = declare(
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

  // Returns its id.
  std::uint32_t declare(const json& options, const char* name = "t") {
    signature_ = {{{"o", DType::kF32, {2}}}, {{"action", DType::kF32, {1}}}, 0};
    const json request{{"name", name},
                       {"observation", columns_json(signature_.observation)},
                       {"step", columns_json(signature_.step)},
                       {"options", options}};
    const std::string text = request.dump();
    send(ServiceKind::kTable, Bytes(text.begin(), text.end()));
    const auto reply = receive();
    EXPECT_TRUE(reply && reply->kind == 0x82) << (reply ? reply->text() : "no reply");
    const json answer = json::parse(reply->text());
    signature_.spec_hash = std::stoull(answer["spec_hash"].get<std::string>());
    return answer["id"].get<std::uint32_t>();
  }

  Bytes chunk(std::uint64_t sequence, std::uint32_t steps) {
    return chunk(sequence, steps, words({table_, 0}));  // no flags
  }
  Bytes chunk(std::uint64_t sequence, std::uint32_t steps, Bytes body) {
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

// Table 0 of the fixture holds inserts back at a cursor of 6; table 1 takes any.
TEST_F(ReplayServiceTest, AChunkForTwoTablesGoesIntoBothOrWaitsForBoth) {
  const std::uint32_t other = declare({{"capacity", 100}, {"n_step", 3}}, "other");
  const auto both = [&](std::uint64_t sequence, std::uint32_t steps) {
    return chunk(sequence, steps, words({other, 2, 1, table_}));
  };
  send(ServiceKind::kInsert, both(0, 6));
  auto reply = receive();
  ASSERT_TRUE(reply);
  ASSERT_EQ(reply->body.size(), 16U) << reply->text();
  EXPECT_EQ(reply->body[8], 12) << "items of both";
  send(ServiceKind::kInsert, both(1, 3));
  EXPECT_FALSE(receive());
  json tables = service_->info()["tables"];
  for (const json& table : tables) {
    EXPECT_EQ(table["inserted_steps"], 6);
    EXPECT_EQ(table["waiting_inserts"], 1);
    EXPECT_THAT(table["insert_block_reason"].get<std::string>(), HasSubstr("insert"));
  }
  // Whoever writes to the other table alone does not wait for this one.
  send(ServiceKind::kInsert, chunk(7, 1, words({other, 0})));
  ASSERT_TRUE(receive());
  EXPECT_EQ(service_->info()["tables"][1]["inserted_steps"], 7);

  send(ServiceKind::kSample, words({table_, 4, 1000}));
  ASSERT_TRUE(receive());
  ASSERT_TRUE(receive());
  EXPECT_EQ(service_->info()["tables"][0]["inserted_steps"], 9);
  const json info = service_->info();
  EXPECT_EQ(info["chunks"], 3);
  EXPECT_EQ(info["bytes_held"], info["tables"][1]["bytes_held"]);
  const auto of = [&](int table, const char* key) {
    return info["tables"][table][key].get<std::uint64_t>();
  };
  EXPECT_EQ(info["memory_bytes"].get<std::uint64_t>(),
            of(0, "memory_bytes") + of(1, "memory_bytes") - of(0, "chunk_memory_bytes"));
}

TEST_F(ReplayServiceTest, AChunkForTwoTablesIsKnownInBothWhenItComesAgain) {
  const std::uint32_t other = declare({{"capacity", 100}}, "other");
  for (const std::uint64_t before : {0U, 1U}) {
    send(ServiceKind::kInsert, chunk(0, 2, words({table_, 2, 1, other})));
    const auto reply = receive();
    ASSERT_TRUE(reply);
    ASSERT_EQ(reply->body.size(), 16U) << reply->text();
    EXPECT_EQ(reply->body[0], before);
  }
  for (const json& table : service_->info()["tables"]) {
    EXPECT_EQ(table["inserted_steps"], 2);
    EXPECT_EQ(table["duplicate_chunks"], 1);
  }
}

TEST_F(ReplayServiceTest, AnInsertForTablesThatCannotShareIsRefused) {
  const auto error = [&](Bytes head) {
    send(ServiceKind::kInsert, chunk(0, 2, std::move(head)));
    const auto reply = receive();
    return reply ? reply->error() : 0;
  };
  const std::uint32_t packs =
      declare({{"compression", {{"o", "zstd"}}}, {"capacity", 10}}, "packs");
  const auto invalid = static_cast<std::uint32_t>(ServiceErrorCode::kInvalidArgument);
  EXPECT_EQ(error(words({table_, 2, 1, packs})), invalid);
  EXPECT_EQ(error(words({table_, 2, 1, table_})), invalid);
  EXPECT_EQ(error(words({table_, 2, 1, table_ + 9})),
            static_cast<std::uint32_t>(ServiceErrorCode::kNotFound));
  EXPECT_EQ(error(words({table_, 2, 0x40000000})),
            static_cast<std::uint32_t>(ServiceErrorCode::kMalformed));
  EXPECT_EQ(service_->info()["chunks"], 0);
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

TEST(ServiceDisk, KeepsTheTablesPayloadsWithinWhatWasSetAside) {
  ServiceOptions options;
  options.endpoint = "inproc://replay-service-disk";
  options.disk_folder = testing::TempDir();
  options.disk_mib = 1;
  auto service = ReplayService::open(options).value();
  const auto request = [](const char* name, int capacity, int bytes) {
    return read_table_request({{"name", name},
                               {"observation", columns_json({{"o", DType::kF32, {254}}})},
                               {"options", {{"capacity", capacity}, {"capacity_bytes", bytes}}}},
                              1 << 20)
        .value();
  };
  ASSERT_TRUE(service->add_table(request("half", 500, 0)));  // of 1020 bytes and a reward
  const auto refused = service->add_table(request("more", 1000, 0));
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, testing::AllOf(HasSubstr("MiB of disk"), HasSubstr("more"),
                                                      HasSubstr("capacity_bytes")));
  EXPECT_TRUE(service->add_table(request("bounded", 1000, 500000)));
  EXPECT_EQ(service->info()["disk_bytes"], 0);
}

TEST(ServiceDisk, SaysAtTheStartThatThereIsNoRoom) {
  ServiceOptions options;
  options.endpoint = "inproc://replay-service-no-disk";
  options.disk_folder = "/nowhere/at/all";
  EXPECT_THAT(ReplayService::open(options).error().message, HasSubstr("given together"));
  options.disk_mib = 1;
  const auto opened = ReplayService::open(options);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, ErrorCode::kIo);
  EXPECT_THAT(opened.error().message, HasSubstr("/nowhere/at/all"));
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
