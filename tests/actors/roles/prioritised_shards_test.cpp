// Prioritised draws over several shards: the distribution, the weights, and priorities on their way
// back.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/actors/roles/sampled_shards.hpp"

namespace troupe::actors {
namespace {

using namespace troupe::actors::testing;
using replay::InsertOutcome;

struct World {
  std::vector<std::shared_ptr<replay::Table>> tables;
  std::vector<std::vector<double>> priorities;  // [shard][slot]
};

// Shards of unequal size and mass, whose items all have known priorities.
World prioritised_world(const std::vector<std::uint32_t>& sizes, replay::WeightScale scale) {
  World world;
  Random random(3);
  for (std::uint32_t shard = 0; shard < sizes.size(); ++shard) {
    replay::TableOptions options = table_options(shard);
    options.limiter.kind = replay::LimiterKind::kAllowance;
    options.selector = "prioritised";
    options.priority_exponent = 0.7;
    options.importance_exponent = 0.5;
    options.weight_scale = scale;
    world.tables.push_back(make_table(options));
    fill(*world.tables.back(), sizes[shard], static_cast<float>(shard + 1));
    std::vector<double>& values = world.priorities.emplace_back();
    std::vector<replay::ItemKey> keys;
    // Generations count the items of a table.
    for (std::uint32_t slot = 0; slot < sizes[shard]; ++slot) {
      keys.push_back({shard, 9, slot, slot + 1});
      values.push_back(0.1 + 5 * random.uniform() * (shard + 1));
    }
    EXPECT_EQ(world.tables.back()->update_priorities(keys, values), sizes[shard]);
  }
  return world;
}

// Exact: p^0.7 over the sum of all shards'.
std::vector<std::vector<double>> exact_probabilities(const World& world) {
  double total = 0;
  for (const auto& shard : world.priorities)
    for (const double p : shard) total += std::pow(p, 0.7);
  std::vector<std::vector<double>> exact;
  for (const auto& shard : world.priorities) {
    exact.emplace_back();
    for (const double p : shard) exact.back().push_back(std::pow(p, 0.7) / total);
  }
  return exact;
}

void check_distribution(BatchSource& source, const World& world, replay::WeightScale scale) {
  const auto exact = exact_probabilities(world);
  std::vector<std::vector<double>> seen;
  double smallest = 1;
  for (const auto& shard : exact) {
    seen.emplace_back(shard.size());
    for (const double p : shard) smallest = std::min(smallest, p);
  }
  double draws = 0;
  for (int i = 0; i < 600; ++i) {
    replay::Batch* batch = source.next(kPatience);
    ASSERT_NE(batch, nullptr) << source.waiting_on();
    const auto probability = [&](std::size_t row) {
      return exact[batch->keys[row].shard][batch->keys[row].slot];
    };
    double base = smallest;
    if (scale == replay::WeightScale::kBatch) {
      base = 1;
      for (std::size_t row = 0; row < batch->keys.size(); ++row)
        base = std::min(base, probability(row));
    }
    for (std::size_t row = 0; row < batch->keys.size(); ++row) {
      ++seen[batch->keys[row].shard][batch->keys[row].slot];
      ++draws;
      // Powers are kept as floats.
      EXPECT_NEAR(batch->floats("weight")[row], std::sqrt(base / probability(row)), 1e-5);
    }
    source.release(batch);
  }
  double chi_square = 0, cells = 0;
  for (std::size_t shard = 0; shard < exact.size(); ++shard)
    for (std::size_t slot = 0; slot < exact[shard].size(); ++slot, ++cells) {
      const double expected = draws * exact[shard][slot];
      chi_square += std::pow(seen[shard][slot] - expected, 2) / expected;
    }
  // Its mean is cells - 1, its variance twice that: five standard deviations.
  EXPECT_NEAR(chi_square, cells - 1, 5 * std::sqrt(2 * (cells - 1)));
}

TEST(PrioritisedShards, DrawAndWeighLikeOneTableInOneProcess) {
  for (const auto scale : {replay::WeightScale::kBatch, replay::WeightScale::kTable})
    for (const auto& sizes : {std::vector<std::uint32_t>{5, 40}, {30, 3, 12}, {20}}) {
      const World world = prioritised_world(sizes, scale);
      const auto source = make_local_source(world.tables, source_options(64));
      check_distribution(*source, world, scale);
    }
}

TEST(PrioritisedShards, DrawAndWeighLikeOneTableOverChannels) {
  for (const auto scale : {replay::WeightScale::kBatch, replay::WeightScale::kTable})
    for (const auto& sizes : {std::vector<std::uint32_t>{5, 40}, {30, 3, 12}}) {
      const World world = prioritised_world(sizes, scale);
      std::vector<std::unique_ptr<Shard>> shards;
      std::int64_t held = 0;
      for (const auto& each : world.tables) {
        shards.push_back(std::make_unique<Shard>(each));
        held += static_cast<std::int64_t>(each->statistics().held_items);
      }
      // Nothing is drawn before every shard has told what it has.
      SourceOptions options = source_options(64, {held, 0, 0});
      options.importance_exponent = 0.5;
      options.weight_scale = scale;
      const auto source = remote_source(shards, options);
      check_distribution(*source, world, scale);
    }
}

TEST(PrioritisedShards, GiveBatchesLargerThanWhatTheyHold) {
  const World world = prioritised_world({1, 2}, replay::WeightScale::kBatch);
  const auto source = make_local_source(world.tables, source_options(256, {3, 0, 0}));
  replay::Batch* batch = source->next(kPatience);
  ASSERT_NE(batch, nullptr);
  for (const float weight : batch->floats("weight")) {
    EXPECT_GT(weight, 0);
    EXPECT_LE(weight, 1);
  }
}

TEST(PrioritisedShards, TakePrioritiesBackByTheirMessagesAndNeverForARecycledSlot) {
  replay::TableOptions options = table_options(0);
  options.selector = "prioritised";
  options.priority_exponent = 1;
  options.capacity = 2;
  std::vector<std::unique_ptr<Shard>> shards;
  shards.push_back(std::make_unique<Shard>(make_table(options)));
  replay::Table& table = shards[0]->table();
  fill(table, 2, 1);
  const auto source = remote_source(shards, source_options(8));
  replay::Batch* batch = source->next(kPatience);
  ASSERT_NE(batch, nullptr);
  const std::vector<replay::ItemKey> keys = {{0, 9, 0, 1}, {0, 9, 1, 2}};
  source->update_priorities(keys, std::vector<float>{3, 5});
  ASSERT_TRUE(eventually([&] { return table.statistics().priority_updates == 2; }));
  EXPECT_DOUBLE_EQ(table.statistics().total_mass, 8);
  // Both slots are given to new items, which begin with the highest priority still held.
  ASSERT_EQ(table.try_insert(std::make_shared<const replay::Chunk>(episode(1, 2, 1))).kind,
            InsertOutcome::Kind::kAccepted);
  const double mass = table.statistics().total_mass;
  source->update_priorities(keys, std::vector<float>{100, 100});
  const std::vector<replay::ItemKey> others = {{0, 8, 0, 3}, {0, 9, 7, 1}};  // of no item ever
  source->update_priorities(others, std::vector<float>{100, 100});
  ASSERT_TRUE(eventually([&] { return table.statistics().stale_priorities == 4; }));
  EXPECT_EQ(table.statistics().priority_updates, 2U);
  EXPECT_DOUBLE_EQ(table.statistics().total_mass, mass);
  // A shard that is nowhere: its priorities are lost, and counted.
  const std::vector<replay::ItemKey> nowhere = {{3, 9, 0, 1}};
  source->update_priorities(nowhere, std::vector<float>{1});
  EXPECT_TRUE(eventually([&] { return source->figures().priorities_lost == 1; }));
  EXPECT_EQ(source->figures().priorities, 6U);
}

// FAULT: new items get a historical maximum and drown the others' weights.
TEST(PrioritisedShards, KeepsWeightsUsefulAfterAThousandUpdates) {
  std::vector<std::shared_ptr<replay::Table>> tables;
  for (std::uint32_t shard = 0; shard < 2; ++shard) {
    tables.push_back(led_table(shard, 9, true));
    fill(*tables.back(), 400, static_cast<float>(shard + 1));
  }
  const auto source = make_local_source(tables, source_options(64));
  Random random(9);
  std::vector<float> weights;
  for (std::uint64_t update = 0; update < 1000; ++update) {
    replay::Batch* batch = source->next(kPatience);
    ASSERT_NE(batch, nullptr);
    // Losses far below the 1 that the first items began with, falling as learning goes on.
    std::vector<float> losses;
    for (std::size_t i = 0; i < batch->keys.size(); ++i)
      losses.push_back(static_cast<float>(1e-2 * std::exp(-random.uniform()) /
                                          (1 + 0.01 * static_cast<double>(update))));
    source->update_priorities(batch->keys, losses);
    if (update >= 900)
      weights.insert(weights.end(), batch->floats("weight").begin(), batch->floats("weight").end());
    source->release(batch);
    if (update % 10 == 0)
      (void)tables[update / 10 % 2]->prefill(
          std::make_shared<const replay::Chunk>(episode(update + 1, 4, 1)));
  }
  std::sort(weights.begin(), weights.end());
  // (P_min / P)^0.4 with P as loss^0.6: losses within a factor of 30 leave weights above 30^-0.24 =
  // 0.44.
  EXPECT_GT(weights[weights.size() / 2], 0.4F);
  EXPECT_GT(weights.front(), 0.3F);
}

}  // namespace
}  // namespace troupe::actors
