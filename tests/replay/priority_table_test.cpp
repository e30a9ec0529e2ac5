// Tables that draw by priority: weights, bounds on draws, late updates, several tables at once.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "replay/importance.hpp"
#include "replay/selector.hpp"
#include "tests/replay/selector_support.hpp"
#include "tests/replay/support.hpp"

namespace troupe::replay {
namespace {

using namespace testing;
using Kind = InsertOutcome::Kind;
using namespace std::chrono_literals;

TableOptions prioritised(double alpha = 1, double beta = 1) {
  TableOptions options = small_options();
  options.selector = kPrioritised;
  options.priority_exponent = alpha;
  options.importance_exponent = beta;
  return options;
}

// One item, alone in its episode; its observation names it.
InsertOutcome insert_one(Table& table, std::uint32_t number, std::optional<double> priority = {}) {
  return table.try_insert(
      make_chunk(
          {.sequence = number, .episode = number, .steps = 1, .end = EpisodeEnd::kTruncated}),
      priority);
}

std::uint32_t number_of(const SampledItem& item) {
  return static_cast<std::uint32_t>(item.chunk->episode());
}

ItemKey key_of(const SampledItems& items, std::size_t i) {
  return {items.shard, items.shard_epoch, items.items[i].slot, items.items[i].generation};
}

void expect_ledger(const Table& table) {
  const TableStatistics s = table.statistics();
  EXPECT_EQ(s.inserted_items, s.held_items + s.removed_items + s.lost_items);
  EXPECT_EQ(s.inserted_steps, s.held_steps + s.removed_steps + s.lost_steps);
  EXPECT_EQ(s.held_steps, s.held_items + s.pending_steps);
}

TEST(PrioritisedTable, DrawsAMixOfGivenAndUpdatedPrioritiesAsOften) {
  auto table = make_table(prioritised(0.6));
  std::vector<double> exact(50);
  for (std::uint32_t i = 0; i < 50; ++i) insert_one(*table, i, exact[i] = 1.0 + i % 7);
  const auto first = table->try_sample(64).value();
  for (std::size_t i = 0; i < 64; ++i) {
    const double priority = 0.5 + number_of(first.items[i]) % 3;
    EXPECT_EQ(table->update_priorities(std::vector{key_of(first, i)}, std::vector{priority}), 1U);
    exact[number_of(first.items[i])] = priority;
  }
  double total = 0;
  for (double& mass : exact) total += mass = std::pow(mass, 0.6);
  for (double& mass : exact) mass /= total;
  std::vector<double> counts(50);
  for (int round = 0; round < 1000; ++round) {
    const auto items = table->try_sample(1000).value();
    EXPECT_NEAR(items.total_mass, total, 1e-6 * total);
    EXPECT_EQ(items.held_items, 50U);
    for (const SampledItem& item : items.items) ++counts[number_of(item)];
  }
  EXPECT_LT(chi_square(counts, exact), chi_square_limit(49));
}

TEST(PrioritisedTable, FillsABatchLargerThanItsContent) {
  TableOptions options = prioritised();
  options.limiter.min_size = 10;
  auto table = make_table(options);
  for (std::uint32_t i = 0; i < 10; ++i) insert_one(*table, i, i);
  const Batch batch = take_batch(*table, 256);
  for (std::size_t i = 0; i < 256; ++i) {
    EXPECT_GE(batch.floats("observation")[2 * i], 1);  // never the one of priority 0
    EXPECT_LT(batch.floats("observation")[2 * i], 10);
    EXPECT_GT(batch.floats("weight")[i], 0);
  }
}

TEST(PrioritisedTable, WeighsItemsByTheirProbabilityOverTheLeastOfTheBatch) {
  auto table = make_table(prioritised(1, 0.5));
  for (std::uint32_t i = 0; i < 4; ++i) insert_one(*table, i, 1 << i);  // P = 1, 2, 4, 8 of 15
  auto items = table->try_sample(64).value();
  EXPECT_DOUBLE_EQ(items.min_probability, 1.0 / 15);
  EXPECT_EQ(items.importance_exponent, 0.5);
  Batch batch(table->batch_columns(), 64);
  std::uint32_t least = 3;
  for (const SampledItem& item : items.items) least = std::min(least, number_of(item));
  ASSERT_TRUE(table->gather(items, batch));
  for (std::size_t i = 0; i < 64; ++i)  // (1 / (4 P))^0.5 over the same of the least
    EXPECT_FLOAT_EQ(batch.floats("weight")[i],
                    std::sqrt(std::exp2(static_cast<float>(least) -
                                        static_cast<float>(number_of(items.items[i])))));

  // Over the table's least: also where the least is not in the batch.
  std::erase_if(items.items, [](const SampledItem& item) { return number_of(item) < 2; });
  items.weight_scale = WeightScale::kTable;
  items.importance_exponent = 1;
  std::vector<float> weights(items.items.size());
  importance_weights(items, weights);
  for (std::size_t i = 0; i < weights.size(); ++i)
    EXPECT_FLOAT_EQ(weights[i], std::exp2(-static_cast<float>(number_of(items.items[i]))));

  items.importance_exponent = 0;
  importance_weights(items, weights);
  EXPECT_TRUE(std::all_of(weights.begin(), weights.end(), [](float w) { return w == 1; }));
}

TEST(PrioritisedTable, MakesWeightedSumsUnbiased) {
  // With beta 1 the mean of weight x value, over that of the weights, is the plain mean.
  auto table = make_table(prioritised(1, 1));
  double mean = 0;
  for (std::uint32_t i = 0; i < 20; ++i) {
    insert_one(*table, i, 0.1 + i % 4);
    mean += i / 20.0;
  }
  double values = 0, weights = 0;
  for (int round = 0; round < 200; ++round) {
    auto items = table->try_sample(1000).value();
    items.weight_scale = WeightScale::kTable;
    std::vector<float> each(1000);
    importance_weights(items, each);
    for (std::size_t i = 0; i < 1000; ++i) {
      values += static_cast<double>(each[i]) * number_of(items.items[i]);
      weights += static_cast<double>(each[i]);
    }
  }
  EXPECT_NEAR(values / weights, mean, 0.1);
}

// Errors far below the 1 that the first items start with: new items join at the scale of the
// errors, so neither their weights nor those of the others vanish.
TEST(PrioritisedTable, KeepsWeightsAwayFromZeroWhenErrorsAreSmall) {
  TableOptions options = prioritised(0.6, 0.4);
  options.capacity = 500;
  auto table = make_table(options);
  std::uint32_t next = 0;
  for (; next < 200; ++next) insert_one(*table, next);
  Random random(5);
  Batch batch(table->batch_columns(), 64);
  std::vector<float> weights;
  for (int update = 0; update < 1000; ++update) {
    insert_one(*table, next++);
    ASSERT_TRUE(table->gather(table->try_sample(64).value(), batch));
    std::vector<double> errors(64);
    for (double& error : errors) error = 1e-4 * (0.5 + random.uniform());
    EXPECT_EQ(table->update_priorities(batch.keys, errors), 64U);
    if (update >= 100)
      weights.insert(weights.end(), batch.floats("weight").begin(), batch.floats("weight").end());
  }
  // Errors lie within a factor of 3: all weights are at least 3^-(0.6 x 0.4) = 0.77.
  EXPECT_GT(*std::min_element(weights.begin(), weights.end()), 0.76F);
}

TEST(PrioritisedTable, RefusesAndCountsPrioritiesThatAreNone) {
  auto table = make_table(prioritised());
  insert_one(*table, 0, 2.0);
  const auto items = table->try_sample(1).value();
  const std::vector keys(4, key_of(items, 0));
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  EXPECT_EQ(table->update_priorities(keys, std::vector{kNaN, -1.0, kInfinite, 3.0}), 1U);
  EXPECT_EQ(insert_one(*table, 1, kNaN).kind, Kind::kRefused);
  EXPECT_EQ(insert_one(*table, 1, -1.0).error.code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(table->statistics().invalid_priorities, 5U);
  EXPECT_EQ(table->statistics().total_mass, 3);
  EXPECT_EQ(insert_one(*table, 1, 1.0).kind, Kind::kAccepted);
}

TEST(PrioritisedTable, ChangesNoPriorityOfAnItemThatCameIntoARecycledSlot) {
  TableOptions options = prioritised();
  options.capacity = 2;
  auto table = make_table(options);
  for (std::uint32_t i = 0; i < 2; ++i) insert_one(*table, i, 1.0);
  Batch late(table->batch_columns(), 16);
  ASSERT_TRUE(table->gather(table->try_sample(16).value(), late));
  for (std::uint32_t i = 2; i < 4; ++i) insert_one(*table, i, 5.0);
  EXPECT_EQ(table->update_priorities(late.keys, std::vector<double>(16, 1000.0)), 0U);
  EXPECT_EQ(table->statistics().stale_priorities, 16U);
  EXPECT_EQ(table->statistics().total_mass, 10);
  // Nor of one in a table that stands in for the one that was asked.
  Batch current = take_batch(*table, 16);
  for (ItemKey& key : current.keys) ++key.shard_epoch;
  EXPECT_EQ(table->update_priorities(current.keys, std::vector<double>(16, 1000.0)), 0U);
  EXPECT_EQ(table->statistics().total_mass, 10);
}

TEST(PrioritisedTable, DrawsFromSeveralTablesAsFromOne) {
  // Two tables of different sizes and masses; draws are shared by mass.
  std::vector<std::unique_ptr<Table>> tables;
  std::vector<double> exact(60);
  double total = 0;
  for (std::uint32_t t = 0; t < 2; ++t) {
    TableOptions options = prioritised(1, 1);
    options.shard = t;
    options.seed = 100 + t;
    tables.push_back(make_table(options));
  }
  for (std::uint32_t i = 0; i < 60; ++i) {
    insert_one(*tables[i < 15 ? 0 : 1], i, exact[i] = 1.0 + i % 5);
    total += exact[i];
  }
  for (double& mass : exact) mass /= total;
  Random random(9);
  std::vector<double> counts(60);
  const double share = tables[0]->statistics().total_mass / total;
  for (int round = 0; round < 2000; ++round) {
    std::size_t first = 0;
    for (int i = 0; i < 500; ++i) first += random.uniform() < share ? 1 : 0;
    SampledItems joined;
    joined.min_probability = 1;
    for (std::size_t t = 0; t < 2; ++t) {
      auto part = tables[t]->try_sample(t == 0 ? first : 500 - first).value();
      widen_to_all_tables(part, t == 0 ? share : 1 - share);
      joined.min_probability = std::min(joined.min_probability, part.min_probability);
      joined.importance_exponent = part.importance_exponent;
      joined.items.insert(joined.items.end(), part.items.begin(), part.items.end());
    }
    for (const SampledItem& item : joined.items) ++counts[number_of(item)];
    if (round > 0) continue;
    EXPECT_NEAR(joined.min_probability, 1.0 / total, 1e-9);
    std::vector<float> weights(500);
    joined.weight_scale = WeightScale::kTable;
    importance_weights(joined, weights);
    for (std::size_t i = 0; i < 500; ++i) {
      EXPECT_NEAR(joined.items[i].probability, exact[number_of(joined.items[i])], 1e-9);
      EXPECT_NEAR(weights[i], 1.0F / static_cast<float>(1 + number_of(joined.items[i]) % 5), 1e-6);
    }
  }
  EXPECT_LT(chi_square(counts, exact), chi_square_limit(59));
}

TEST(UniformTable, WeighsEveryItemOneWhateverTheExponent) {
  for (const std::string_view name : selector_names()) {
    if (name == kPrioritised) continue;
    TableOptions options = small_options();
    options.selector = name;
    options.importance_exponent = 1;
    auto table = make_table(options);
    for (std::uint32_t i = 0; i < 5; ++i) insert_one(*table, i, i);
    const Batch batch = take_batch(*table, 32);
    for (const float weight : batch.floats("weight")) EXPECT_EQ(weight, 1) << name;
  }
}

TEST(BoundedTable, LetsEachItemGoWithItsLastDraw) {
  for (const std::string_view name : selector_names()) {
    TableOptions options = small_options();
    options.selector = name;
    options.max_times_sampled = 3;
    auto table = make_table(options);
    for (std::uint32_t i = 0; i < 20; ++i) insert_one(*table, i, 1 + i % 4);
    std::map<std::uint32_t, int> times;
    for (int round = 0; round < 6; ++round) {
      const auto items = table->try_sample(10).value();
      for (const SampledItem& item : items.items) ++times[number_of(item)];
      expect_ledger(*table);
      EXPECT_EQ(table->statistics().held_items,
                20 - static_cast<std::uint64_t>(std::count_if(
                         times.begin(), times.end(), [](auto& one) { return one.second == 3; })));
    }
    EXPECT_EQ(times.size(), 20U);  // 60 draws: each exactly three times
    for (const auto& [number, count] : times) EXPECT_EQ(count, 3) << name << " " << number;
    const auto s = table->statistics();
    EXPECT_EQ(s.held_items, 0U);
    EXPECT_EQ(s.removed_items, 20U);
    EXPECT_EQ(s.chunks, 0U);
    EXPECT_EQ(s.bytes_held, 0U);
    EXPECT_FALSE(table->try_sample(1));
  }
}

TEST(BoundedTable, WaitsUntilAsManyDrawsAreLeftAsACallWants) {
  TableOptions options = small_options();
  options.capacity = 5;
  options.max_times_sampled = 2;
  auto table = make_table(options);
  for (std::uint32_t i = 0; i < 3; ++i) insert_one(*table, i);
  EXPECT_TRUE(table->try_sample(5));  // one draw is left
  const auto blocked = table->try_sample(2);
  EXPECT_EQ(blocked.error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(blocked.error().message,
            "sample waits for inserts: 2 draws are wanted and 1 are left of the 1 items' "
            "max_times_sampled 2");
  EXPECT_EQ(table->sample_block_reason(2), blocked.error().message);
  EXPECT_EQ(table->sample(2, 1ns).error().code, ErrorCode::kTimeout);
  insert_one(*table, 3);
  EXPECT_TRUE(table->try_sample(2));
  EXPECT_EQ(table->sample(11, 1h).error().message,
            "a sample of 11 can never be drawn: capacity 5 x max_times_sampled 2 draws are fewer");
}

TEST(BoundedTable, CountsTheDrawsOfItemsThatLeaveOtherwise) {
  TableOptions options = small_options();
  options.capacity = 4;
  options.max_times_sampled = 5;
  auto table = make_table(options);
  Random random(4);
  for (std::uint32_t i = 0; i < 300; ++i) {
    insert_one(*table, i);
    const auto n = static_cast<std::size_t>(1 + random.below(12));
    if (table->sample_block_reason(n).empty()) {
      EXPECT_TRUE(table->try_sample(n));
    }
    expect_ledger(*table);
  }
}

TEST(TableRemoval, FollowsTheRemoverWhicheverSelectorItIs) {
  // Ten items of priorities 5, 6, 7, 8, 9, 0, 1, 2, 3, 4; the eleventh pushes one out.
  const std::map<std::string_view, std::uint32_t> goes{
      {kFifo, 0}, {kLifo, 9}, {kMaxHeap, 4}, {kMinHeap, 5}};
  for (const auto& [name, number] : goes) {
    TableOptions options = small_options();
    options.capacity = 10;
    options.selector = kFifo;
    options.max_times_sampled = 1;
    options.remover = name;
    auto table = make_table(options);
    for (std::uint32_t i = 0; i < 11; ++i) insert_one(*table, i, (i + 5) % 10);
    std::vector<std::uint32_t> left;
    const auto items = table->try_sample(10).value();
    for (const SampledItem& item : items.items) left.push_back(number_of(item));
    EXPECT_EQ(left.size(), 10U);
    EXPECT_EQ(std::count(left.begin(), left.end(), number), 0) << name;
  }
}

TEST(TableRemoval, FollowsUpdatedPriorities) {
  TableOptions options = small_options();
  options.capacity = 3;
  options.remover = kMinHeap;
  auto table = make_table(options);
  for (std::uint32_t i = 0; i < 3; ++i) insert_one(*table, i, 10.0);
  const auto items = table->try_sample(64).value();
  for (std::size_t i = 0; i < 64; ++i)
    if (number_of(items.items[i]) == 1)
      table->update_priorities(std::vector{key_of(items, i)}, std::vector{0.5});
  insert_one(*table, 3, 10.0);
  const auto left = table->try_sample(200).value();
  for (const SampledItem& item : left.items) EXPECT_NE(number_of(item), 1U);
}

}  // namespace
}  // namespace troupe::replay
