// Shards, batches and parameters over channels of one process: the loss rules of the data plane.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "actors/messages/data_protocol.hpp"
#include "actors/roles/batch_message.hpp"
#include "actors/roles/batch_source.hpp"
#include "actors/roles/parameter_feed.hpp"
#include "actors/roles/shard_server.hpp"
#include "replay/codec.hpp"

namespace troupe::actors {
namespace {

using std::chrono::milliseconds;

const replay::Signature kSignature{
    {{"observation", DType::kF32, {2}}}, {{"action", DType::kF32, {1}}}, 5};

std::shared_ptr<replay::Table> table(std::uint32_t shard = 0, double spi = 0,
                                     std::int64_t min_size = 1, double error_buffer = 0) {
  replay::TableOptions options;
  options.capacity = 1000;
  options.limiter = {.min_size = min_size, .samples_per_insert = spi, .error_buffer = error_buffer};
  options.shard = shard;
  options.shard_epoch = 9;
  options.seed = 11 + shard;
  auto made = replay::Table::create(options, kSignature);
  EXPECT_TRUE(made) << made.error().message;
  return std::move(*made);
}

// A whole episode of `steps` steps whose observations all hold `value`.
replay::Chunk episode(std::uint64_t sequence, std::uint32_t steps, float value,
                      std::uint32_t worker = 0) {
  replay::Chunk chunk;
  chunk.header = {.worker = worker,
                  .incarnation = 1,
                  .sequence = sequence,
                  .environment = 0,
                  .episode = sequence,
                  .first_step = 0,
                  .steps = steps,
                  .end = replay::EpisodeEnd::kTruncated,
                  .parameter_version = 3,
                  .learner_epoch = 1,
                  .spec_hash = 5};
  const auto bytes = [](std::vector<float> values) {
    const auto* first = reinterpret_cast<const std::uint8_t*>(values.data());
    return std::vector<std::uint8_t>(first, first + values.size() * sizeof(float));
  };
  chunk.observation = {bytes(std::vector<float>(2 * (steps + 1), value))};
  chunk.step = {bytes(std::vector<float>(steps, value))};
  chunk.reward.assign(steps, value);
  return chunk;
}

ChannelMessage segment(const replay::Chunk& chunk) {
  return {static_cast<std::uint8_t>(DataKind::kSegment),
          std::make_shared<const Bytes>(replay::encode(chunk, kSignature))};
}

std::string unique_endpoint() {
  static int number = 0;
  return "inproc://data-plane-test-" + std::to_string(number++);
}

TEST(ShardServer, AcknowledgesEachChunkOnceItIsInAndADuplicateAgain) {
  auto server = ShardServer::open(table(), unique_endpoint(), "").value();
  auto client = open_channel_client(server->data_endpoint(), "actor-0.1").value();
  for (int round = 0; round < 2; ++round) {
    ASSERT_TRUE(client->send(segment(episode(7, 4, 1))));
    server->serve(milliseconds{100});
    const auto answer = client->receive(milliseconds{1000});
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->kind, static_cast<std::uint8_t>(DataKind::kAck));
    EXPECT_EQ(words_of<3>(*answer), (std::array<std::uint64_t, 3>{0, 1, 7}));
  }
  EXPECT_EQ(server->table().statistics().inserted_steps, 4U);
  EXPECT_EQ(server->table().statistics().duplicate_chunks, 1U);
}

TEST(ShardServer, HoldsBackChunksAndTheirCreditWhileTheLimiterDoes) {
  // At SPI 1 and min size 4 +- 4: 8 items fit, then samples are owed.
  auto shared = table(0, 1, 4, 4);
  auto server = ShardServer::open(shared, unique_endpoint(), "").value();
  auto client = open_channel_client(server->data_endpoint(), "actor-0.1").value();
  for (std::uint64_t i = 0; i < 3; ++i) ASSERT_TRUE(client->send(segment(episode(i, 4, 1))));
  server->serve(milliseconds{100});
  EXPECT_TRUE(client->receive(milliseconds{100}));
  EXPECT_TRUE(client->receive(milliseconds{100}));
  EXPECT_FALSE(client->receive(milliseconds{0}));
  ASSERT_TRUE(client->send(segment(episode(2, 4, 1))));  // resent while it waits
  server->serve(milliseconds{0});
  EXPECT_FALSE(client->receive(milliseconds{0}));
  ASSERT_TRUE(shared->try_sample(8));
  server->serve(milliseconds{0});
  EXPECT_TRUE(client->receive(milliseconds{100}));
  server->serve(milliseconds{0});
  EXPECT_FALSE(client->receive(milliseconds{0}));  // answered once
  EXPECT_EQ(shared->statistics().inserted_steps, 12U);
}

TEST(ShardServer, TakesNoChunkOnceItHasTheStepsItMayHave) {
  auto server = ShardServer::open(table(), unique_endpoint(), "").value();
  auto client = open_channel_client(server->data_endpoint(), "actor-0.1").value();
  server->limit(6);
  for (std::uint64_t i = 0; i < 3; ++i) ASSERT_TRUE(client->send(segment(episode(i, 4, 1))));
  server->serve(milliseconds{100});
  server->serve(milliseconds{0});
  EXPECT_EQ(server->table().statistics().inserted_steps, 8U);
  server->limit(9);
  server->serve(milliseconds{0});
  EXPECT_EQ(server->table().statistics().inserted_steps, 12U);
}

TEST(ShardServer, RefusesForeignAndDamagedChunksByNameSoThatTheyAreNotResent) {
  auto server = ShardServer::open(table(), unique_endpoint(), "").value();
  auto client = open_channel_client(server->data_endpoint(), "actor-0.1").value();
  auto bytes = replay::encode(episode(7, 4, 1), kSignature);
  bytes[bytes.size() / 2] ^= 1;
  ASSERT_TRUE(client->send(
      {static_cast<std::uint8_t>(DataKind::kSegment), std::make_shared<const Bytes>(bytes)}));
  server->serve(milliseconds{100});
  const auto answer = client->receive(milliseconds{1000});
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->kind, static_cast<std::uint8_t>(DataKind::kRefused));
  EXPECT_EQ((*words_of<3>(*answer))[2], 7U);
  ASSERT_TRUE(client->send({200, std::make_shared<const Bytes>(3)}));
  server->serve(milliseconds{100});
  EXPECT_EQ(server->corrupt(), 2U);
  EXPECT_EQ(server->table().statistics().inserted_steps, 0U);
}

TEST(DrawCounts, AreProportionalToWhatEachShardHolds) {
  Random random(1);
  EXPECT_EQ(draw_counts(10, {0, 0}, random), (std::vector<std::size_t>{0, 0}));
  EXPECT_EQ(draw_counts(10, {0, 5}, random), (std::vector<std::size_t>{0, 10}));
  std::vector<double> total(3);
  constexpr int kDraws = 3000;
  for (int i = 0; i < kDraws; ++i) {
    const auto counts = draw_counts(100, {1, 2, 7}, random);
    EXPECT_EQ(counts[0] + counts[1] + counts[2], 100U);
    for (int k = 0; k < 3; ++k)
      total[static_cast<std::size_t>(k)] +=
          static_cast<double>(counts[static_cast<std::size_t>(k)]);
  }
  // Binomial(300 000, p): five standard deviations.
  const double expected[] = {0.1, 0.2, 0.7};
  for (std::size_t k = 0; k < 3; ++k) {
    const double n = 100.0 * kDraws, mean = n * expected[k];
    EXPECT_NEAR(total[k], mean, 5 * std::sqrt(mean * (1 - expected[k]))) << k;
  }
}

TEST(BatchMessage, CarriesABatchAndRefusesEveryOtherSize) {
  auto source = table();
  ASSERT_EQ(source->try_insert(std::make_shared<const replay::Chunk>(episode(0, 4, 2))).kind,
            replay::InsertOutcome::Kind::kAccepted);
  replay::Batch batch(source->batch_columns(), 3);
  ASSERT_TRUE(source->gather(*source->try_sample(3), batch));
  const ChannelMessage message = encode_batch(batch, 42, 4);
  EXPECT_EQ(batch_head(message)->batch_id, 42U);
  replay::Batch copy(source->batch_columns(), 5);
  ASSERT_TRUE(decode_batch(message, copy, 2));
  EXPECT_EQ(copy.floats("observation")[2 * 2], 2.0F);
  EXPECT_EQ(copy.keys[4], batch.keys[2]);
  EXPECT_FALSE(decode_batch(message, copy, 3));  // does not fit behind row 3
  for (std::size_t size = 0; size < message.payload->size(); ++size) {
    const Bytes cut(message.payload->begin(),
                    message.payload->begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_FALSE(decode_batch({message.kind, std::make_shared<const Bytes>(cut)}, copy, 0));
  }
}

void check_batches(BatchSource& source, int batches, const std::set<std::uint32_t>& shards) {
  std::set<std::uint32_t> seen;
  for (int i = 0; i < batches; ++i) {
    replay::Batch* batch = source.next(milliseconds{10000});
    ASSERT_NE(batch, nullptr) << source.waiting_on();
    for (std::size_t row = 0; row < static_cast<std::size_t>(batch->items()); ++row) {
      // Each shard holds observations of its own number plus one.
      EXPECT_EQ(batch->floats("observation")[2 * row],
                static_cast<float>(batch->keys[row].shard + 1));
      EXPECT_EQ(batch->keys[row].shard_epoch, 9U);
      EXPECT_EQ(batch->versions[row], 3U);
      seen.insert(batch->keys[row].shard);
    }
    source.release(batch);
  }
  EXPECT_EQ(seen, shards);
}

TEST(BatchSource, MixesTheShardsOfThisProcess) {
  std::vector<std::shared_ptr<replay::Table>> tables = {table(0), table(1)};
  for (std::uint32_t i = 0; i < 2; ++i)
    tables[i]->try_insert(
        std::make_shared<const replay::Chunk>(episode(0, 50, static_cast<float>(i + 1))));
  const auto source = make_local_source(tables, 64, 2, Random(1));
  check_batches(*source, 20, {0, 1});
}

TEST(BatchSource, SaysWhyNoBatchComes) {
  const auto source = make_local_source({table(0, 0, 100)}, 8, 2, Random(1));
  EXPECT_EQ(source->next(milliseconds{200}), nullptr);
  EXPECT_THAT(source->waiting_on(), testing::HasSubstr("100"));
}

TEST(BatchSource, TakesBatchesFromShardsOfOtherProcessesAndGoesOnWhenOneMoves) {
  std::vector<std::unique_ptr<ShardServer>> servers;
  std::vector<std::string> endpoints;
  for (std::uint32_t i = 0; i < 2; ++i) {
    auto shared = table(i);
    shared->try_insert(
        std::make_shared<const replay::Chunk>(episode(0, 50, static_cast<float>(i + 1))));
    servers.push_back(ShardServer::open(shared, unique_endpoint(), unique_endpoint()).value());
    endpoints.push_back(servers.back()->sample_endpoint());
  }
  std::atomic<bool> first_serves{true};
  std::jthread first([&](const std::stop_token& stop) {
    while (!stop.stop_requested() && first_serves) servers[0]->serve(milliseconds{1});
  });
  std::jthread second([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) servers[1]->serve(milliseconds{1});
  });
  const auto source =
      make_remote_source(replay::Table::create({}, kSignature).value()->batch_columns(), 64, 2,
                         "learner-0.1", Random(1));
  source->set_endpoints(endpoints);
  check_batches(*source, 20, {0, 1});
  first_serves = false;
  first.join();
  source->set_endpoints({"", endpoints[1]});
  for (int i = 0; i < 4; ++i)
    source->release(source->next(milliseconds{10000}));  // what was under way
  check_batches(*source, 5, {1});
}

models::ParameterSetPtr parameters(std::uint32_t epoch, std::uint64_t version) {
  auto set = std::make_shared<models::ParameterSet>();
  set->learner_epoch = epoch;
  set->version = version;
  set->policy.push_back(
      {.kind = models::DenseLayer::Kind::kLinear, .inputs = 1, .outputs = 1, .name = "out"});
  set->arrays["out.weight"] = {{1, 1}, {1}};
  set->arrays["out.bias"] = {{1}, {static_cast<float>(version)}};
  return set;
}

TEST(ParameterFeed, GivesEveryAskerTheNewestSetOnce) {
  auto server = ParameterServer::open(unique_endpoint()).value();
  auto subscriber = ParameterSubscriber::open(server->endpoint(), "actor-0.1").value();
  EXPECT_FALSE(subscriber->poll(milliseconds{0}));
  server->serve(milliseconds{100});
  server->publish(parameters(1, 0));  // version 0 counts: it is what a fresh learner has
  ASSERT_TRUE(subscriber->poll(milliseconds{1000}));
  EXPECT_EQ(subscriber->newest()->version, 0U);
  server->publish(parameters(1, 10));
  server->publish(parameters(1, 20));
  server->serve(milliseconds{100});
  ASSERT_TRUE(subscriber->poll(milliseconds{1000}));
  EXPECT_EQ(subscriber->newest()->version, 20U);
  server->serve(milliseconds{10});
  EXPECT_FALSE(subscriber->poll(milliseconds{0}));
}

TEST(ParameterFeed, ARestartedLearnerWinsThoughItsVersionIsLower) {
  auto server = ParameterServer::open(unique_endpoint()).value();
  auto subscriber = ParameterSubscriber::open(server->endpoint(), "actor-0.1").value();
  subscriber->keep(parameters(1, 500));
  subscriber->poll(milliseconds{0});
  server->publish(parameters(2, 40));
  server->serve(milliseconds{100});
  ASSERT_TRUE(subscriber->poll(milliseconds{1000}));
  EXPECT_EQ(subscriber->newest()->learner_epoch, 2U);
  EXPECT_EQ(subscriber->newest()->version, 40U);
}

}  // namespace
}  // namespace troupe::actors
