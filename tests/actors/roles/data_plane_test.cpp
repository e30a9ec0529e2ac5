// Shards and parameters over channels of one process: the loss rules of the data plane.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "actors/roles/parameter_feed.hpp"
#include "actors/roles/shard_server.hpp"
#include "tests/actors/roles/data_plane.hpp"

namespace troupe::actors {
namespace {

using namespace troupe::actors::testing;

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
