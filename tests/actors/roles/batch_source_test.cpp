// Batches from local and remote shards, and the messages that make them.
#include "actors/roles/batch_source.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "actors/roles/batch_message.hpp"
#include "actors/roles/draw_shares.hpp"
#include "tests/actors/roles/sampled_shards.hpp"

namespace troupe::actors {
namespace {

using namespace troupe::actors::testing;

ShardState stock(std::uint64_t held, double mass) {
  ShardState state;
  state.held = held;
  state.mass = mass;
  return state;
}

TEST(DrawShares, GoByMassAndByWhatIsHeldWhileThereIsNone) {
  using Shares = std::vector<double>;
  EXPECT_EQ(draw_shares({stock(0, 0), stock(0, 0)}), (Shares{0, 0}));
  EXPECT_EQ(draw_shares({stock(10, 1), stock(1, 3)}), (Shares{0.25, 0.75}));
  EXPECT_EQ(draw_shares({stock(10, 0), stock(1, 3)}), (Shares{0, 1}));
  EXPECT_EQ(draw_shares({stock(30, 0), stock(10, 0)}), (Shares{0.75, 0.25}));
  EXPECT_EQ(draw_shares({stock(0, 5), stock(1, 1)}), (Shares{0, 1}));  // it told of mass once
}

TEST(DrawCounts, AreMultinomialAndSumToTheBatch) {
  Random random(1);
  EXPECT_EQ(draw_counts(10, {0, 0}, random), (std::vector<std::size_t>{0, 0}));
  EXPECT_EQ(draw_counts(10, {0, 1, 0}, random), (std::vector<std::size_t>{0, 10, 0}));
  std::vector<double> total(4);
  constexpr int kDraws = 3000;
  const double expected[] = {0.1, 0.2, 0.7, 0};
  for (int i = 0; i < kDraws; ++i) {
    const auto counts = draw_counts(100, {0.1, 0.2, 0.7, 0}, random);
    EXPECT_EQ(counts[0] + counts[1] + counts[2] + counts[3], 100U);
    for (std::size_t k = 0; k < 4; ++k) total[k] += static_cast<double>(counts[k]);
  }
  // Binomial(300 000, p): five standard deviations.
  for (std::size_t k = 0; k < 4; ++k) {
    const double n = 100.0 * kDraws, mean = n * expected[k];
    EXPECT_NEAR(total[k], mean, 5 * std::sqrt(mean * (1 - expected[k]))) << k;
  }
}

TEST(BatchMessage, CarriesABatchAndRefusesEveryOtherSize) {
  auto source = table();
  fill(*source, 4, 2);
  replay::Batch batch(source->batch_columns(), 3);
  ASSERT_TRUE(source->gather(*source->try_sample(3), batch));
  const ChannelMessage message =
      encode_batch(batch, std::vector<double>{0.5, 0.25, 0.125}, 42, 0.1);
  EXPECT_EQ(batch_head(message)->batch_id, 42U);
  EXPECT_EQ(batch_head(message)->min_probability, 0.1);
  EXPECT_EQ(batch_head(encode_no_batch(7))->items, 0U);
  replay::Batch copy(source->batch_columns(), 5);
  std::vector<double> probabilities(5);
  ASSERT_TRUE(decode_batch(message, copy, probabilities, 2));
  EXPECT_EQ(copy.floats("observation")[2 * 2], 2.0F);
  EXPECT_EQ(copy.keys[4], batch.keys[2]);
  EXPECT_EQ(probabilities, (std::vector<double>{0, 0, 0.5, 0.25, 0.125}));
  EXPECT_FALSE(decode_batch(message, copy, probabilities, 3));  // does not fit behind row 3
  for (std::size_t size = 0; size < message.payload->size(); ++size) {
    const Bytes cut(message.payload->begin(),
                    message.payload->begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_FALSE(
        decode_batch({message.kind, std::make_shared<const Bytes>(cut)}, copy, probabilities, 0));
  }
}

TEST(ShardMessages, SurviveTheWireAndRefuseEveryOtherSize) {
  const ShardState state{7, 1, 2, 3, 4, 0.1, 0.01, 8, 10, 9, 11, 12};
  EXPECT_EQ(decode_state(encode_state(state)), state);
  const Grant grant = decode_grant(encode_grant({3, 4, 5, 6})).value();
  EXPECT_EQ(grant.epoch, 4U);
  EXPECT_EQ(grant.serial, 5U);
  EXPECT_EQ(grant.allowed, 6U);
  const Priorities priorities{{{1, 2, 3, 4}, {1, 2, 5, 6}}, {0.5, 1e-9}};
  const ChannelMessage message = encode_priorities(priorities);
  EXPECT_EQ(decode_priorities(message)->keys, priorities.keys);
  EXPECT_EQ(decode_priorities(message)->values, priorities.values);
  for (const ChannelMessage& each : {encode_state(state), encode_grant(grant), message})
    for (std::size_t size = 0; size < each.payload->size(); ++size) {
      const ChannelMessage cut{
          each.kind,
          std::make_shared<const Bytes>(each.payload->begin(),
                                        each.payload->begin() + static_cast<std::ptrdiff_t>(size))};
      EXPECT_FALSE(decode_state(cut) || decode_grant(cut) || decode_priorities(cut)) << size;
    }
  ShardState wrong = state;
  wrong.mass = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE(decode_state(encode_state(wrong)));
}

void check_batches(BatchSource& source, int batches, const std::set<std::uint32_t>& shards) {
  std::set<std::uint32_t> seen;
  for (int i = 0; i < batches; ++i) {
    replay::Batch* batch = source.next(kPatience);
    ASSERT_NE(batch, nullptr) << source.waiting_on();
    for (std::size_t row = 0; row < static_cast<std::size_t>(batch->items()); ++row) {
      // Each shard holds observations of its own number plus one.
      EXPECT_EQ(batch->floats("observation")[2 * row],
                static_cast<float>(batch->keys[row].shard + 1));
      EXPECT_EQ(batch->keys[row].shard_epoch, 9U);
      EXPECT_EQ(batch->versions[row], 3U);
      EXPECT_EQ(batch->floats("weight")[row], 1.0F);
      seen.insert(batch->keys[row].shard);
    }
    source.release(batch);
  }
  EXPECT_EQ(seen, shards);
}

TEST(BatchSource, MixesTheShardsOfThisProcess) {
  std::vector<std::shared_ptr<replay::Table>> tables = {table(0), table(1)};
  for (std::uint32_t i = 0; i < 2; ++i) fill(*tables[i], 50, static_cast<float>(i + 1));
  const auto source = make_local_source(tables, source_options(64));
  check_batches(*source, 20, {0, 1});
}

TEST(BatchSource, SaysWhyNoBatchComes) {
  const auto source = make_local_source({table(0)}, source_options(8, {100, 0, 0}));
  EXPECT_EQ(source->next(milliseconds{200}), nullptr);
  EXPECT_THAT(source->waiting_on(), ::testing::HasSubstr("min_size 0/100"));
}

TEST(BatchSource, TakesBatchesFromShardsOfOtherProcessesAndGoesOnWhenOneMoves) {
  std::vector<std::unique_ptr<Shard>> shards;
  for (std::uint32_t i = 0; i < 2; ++i) {
    auto shared = table(i);
    fill(*shared, 50, static_cast<float>(i + 1));
    shards.push_back(std::make_unique<Shard>(shared));
  }
  const auto source = remote_source(shards, source_options(64, {100, 0, 0}));
  check_batches(*source, 20, {0, 1});
  // Below what both held together: one alone must do for what is left to be drawn.
  const auto alone = remote_source(shards, source_options(64));
  check_batches(*alone, 20, {0, 1});
  const std::string second = shards[1]->server->sample_endpoint();
  shards[0].reset();
  alone->set_endpoints({"", second});
  for (int i = 0; i < 4; ++i) alone->release(alone->next(kPatience));  // what was under way
  check_batches(*alone, 5, {1});
}

}  // namespace
}  // namespace troupe::actors
