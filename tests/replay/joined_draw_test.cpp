// Draws from several tables as one.
#include "replay/joined_draw.hpp"

#include <gtest/gtest.h>

#include "replay/gather.hpp"
#include "replay/importance.hpp"
#include "tests/replay/support.hpp"

namespace troupe::replay {
namespace {

using testing::make_chunk;
using testing::make_table;
using testing::small_options;
using testing::small_signature;

std::unique_ptr<Table> filled(TableOptions options, std::uint32_t shard, std::uint32_t steps) {
  options.shard = shard;
  options.shard_epoch = 10 + shard;
  auto table = make_table(options);
  const auto inserted = table->try_insert(
      make_chunk({.episode = shard, .steps = steps, .end = EpisodeEnd::kTruncated}));
  EXPECT_EQ(inserted.kind, InsertOutcome::Kind::kAccepted) << inserted.error.message;
  return table;
}

TEST(JoinedDraw, NamesEveryItemsOwnTableAndWidensItsProbability) {
  const auto a = filled(small_options(), 0, 4), b = filled(small_options(), 1, 8);
  JoinedDraw joined;
  joined.add(a->try_sample(3).value(), 0.25);
  joined.add(b->try_sample(2).value(), 0.75);
  ASSERT_EQ(joined.items().items.size(), 5U);
  EXPECT_DOUBLE_EQ(joined.items().items[0].probability, 0.25 / 4);
  EXPECT_DOUBLE_EQ(joined.items().items[4].probability, 0.75 / 8);
  EXPECT_DOUBLE_EQ(joined.items().min_probability, 0.25 / 4);
  joined.bound(0.01);  // of a third table that got no draw
  EXPECT_DOUBLE_EQ(joined.items().min_probability, 0.01);
  joined.bound(0);  // of an empty one
  EXPECT_DOUBLE_EQ(joined.items().min_probability, 0.01);
  Batch batch(a->batch_columns(), 5);
  ASSERT_TRUE(gather(joined.items(), small_signature(), batch));
  joined.name_keys(batch.keys);
  for (std::size_t row = 0; row < 5; ++row) {
    const std::uint32_t shard = row < 3 ? 0 : 1;
    EXPECT_EQ(batch.keys[row].shard, shard);
    EXPECT_EQ(batch.keys[row].shard_epoch, 10 + shard);
    EXPECT_EQ(batch.floats("observation")[2 * row], static_cast<float>(shard));
  }
}

// The chunks between a sequence's first and last one are found by their place in the whole draw.
TEST(JoinedDraw, KeepsTheMiddleOfLongSequences) {
  TableOptions options = small_options();
  options.items = {.kind = ItemShape::Kind::kSequence, .length = 6, .period = 6};
  std::vector<std::unique_ptr<Table>> tables;
  for (std::uint32_t shard = 0; shard < 2; ++shard) {
    options.shard = shard;
    tables.push_back(make_table(options));
    for (std::uint32_t part = 0; part < 3; ++part)
      ASSERT_EQ(tables.back()
                    ->try_insert(make_chunk(
                        {.sequence = part,
                         .episode = shard,
                         .first_step = 2 * part,
                         .steps = 2,
                         .end = part == 2 ? EpisodeEnd::kTruncated : EpisodeEnd::kContinues}))
                    .kind,
                InsertOutcome::Kind::kAccepted);
  }
  JoinedDraw joined;
  for (const auto& table : tables) joined.add(table->try_sample(1).value(), 0.5);
  Batch batch(tables[0]->batch_columns(), 2);
  ASSERT_TRUE(
      gather_spans(joined.items(), small_signature(), options.shape(), options.discount, batch));
  const auto action = batch.floats("action");
  for (std::size_t shard = 0; shard < 2; ++shard)
    for (std::size_t step = 0; step < 6; ++step)
      EXPECT_EQ(action[shard * 6 + step], static_cast<float>(100 * shard + step));
}

TEST(ImportanceWeights, AreTheSameFromProbabilitiesAlone) {
  SampledItems items;
  items.importance_exponent = 0.5;
  items.min_probability = 0.01;
  const std::vector<double> probabilities = {0.25, 0.04, 0.09};
  for (const double p : probabilities) items.items.emplace_back().probability = p;
  for (const WeightScale scale : {WeightScale::kBatch, WeightScale::kTable}) {
    items.weight_scale = scale;
    std::vector<float> expected(3), weights(3);
    importance_weights(items, expected);
    importance_weights(probabilities, 0.01, 0.5, scale, weights);
    EXPECT_EQ(weights, expected);
  }
  EXPECT_FLOAT_EQ(
      [&] {
        std::vector<float> weights(3);
        importance_weights(probabilities, 0.01, 0.5, WeightScale::kTable, weights);
        return weights[0];
      }(),
      0.2F);
}

}  // namespace
}  // namespace troupe::replay
