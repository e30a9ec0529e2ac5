// The sum tree under torture: extreme and equal priorities, zeros, millions of updates.
#include "replay/selectors/mass_tree.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "envs/spec/random.hpp"

namespace troupe::replay {
namespace {

// From 1e-8 to 1e8, evenly in the exponent; now and then zero, or the same as others.
float some_mass(Random& random) {
  const std::uint64_t kind = random.below(10);
  if (kind == 0) return 0;
  if (kind == 1) return 1e8F;
  if (kind == 2) return 1e-8F;
  return static_cast<float>(std::pow(10.0, random.uniform(-8, 8)));
}

double exact_total(const MassTree& tree, std::uint32_t keys) {
  long double sum = 0;
  for (std::uint32_t key = 0; key < keys; ++key)
    sum += static_cast<long double>(std::max(tree.mass(key), 0.0F));
  return static_cast<double>(sum);
}

TEST(MassTree, NeverNamesAKeyOutOfRangeOrWithoutMass) {
  for (const std::uint32_t keys : {1U, 2U, 15U, 16U, 17U, 127U, 128U, 129U, 1000U, 1025U}) {
    Random random(keys);
    MassTree tree;
    for (std::uint32_t key = 0; key < keys; ++key) tree.insert(key, some_mass(random));
    tree.update(keys - 1, 1e8F);
    for (int i = 0; i < 100000; ++i) {
      tree.update(static_cast<std::uint32_t>(random.below(keys)), some_mass(random));
      const double total = tree.total();
      if (total == 0) continue;
      for (const double target :
           {0.0, random.uniform() * total, std::nextafter(total, 0.0), total, total * (1 + 1e-9)}) {
        const auto key = tree.find(target);
        ASSERT_LT(key, keys);
        ASSERT_GT(tree.mass(key), 0);
      }
    }
  }
}

TEST(MassTree, ReachesTheFirstAndTheLastKey) {
  for (const std::uint32_t keys : {1U, 16U, 17U, 1000U, 5000U}) {
    MassTree tree;
    for (std::uint32_t key = 0; key < keys; ++key) tree.insert(key, 0.1F);
    EXPECT_EQ(tree.find(0), 0U);
    EXPECT_EQ(tree.find(std::nextafter(tree.total(), 0.0)), keys - 1);
    EXPECT_EQ(tree.nth(0), 0U);
    EXPECT_EQ(tree.nth(keys - 1), keys - 1);
  }
}

TEST(MassTree, KeepsItsRootThroughTenMillionUpdates) {
  constexpr std::uint32_t kKeys = 10000;
  Random random(3);
  MassTree tree;
  for (std::uint32_t key = 0; key < kKeys; ++key) tree.insert(key, some_mass(random));
  for (int i = 0; i < 10000000; ++i)
    tree.update(static_cast<std::uint32_t>(random.below(kKeys)), some_mass(random));
  const double exact = exact_total(tree, kKeys);
  EXPECT_LE(std::abs(tree.total() - exact), 1e-12 * exact);
  // The large ones leave; nothing of them stays behind in the sums of the small ones.
  for (std::uint32_t key = 0; key < kKeys; ++key) tree.update(key, 1e-8F);
  EXPECT_NEAR(tree.total(), 1e-8 * kKeys, 1e-6 * 1e-8 * kKeys);
}

TEST(MassTree, KnowsCountSmallestAndRankOfWhatIsHeld) {
  Random random(4);
  MassTree tree;
  std::vector<float> model(400, -1);
  EXPECT_EQ(tree.held(), 0U);
  EXPECT_EQ(tree.total(), 0);
  for (int i = 0; i < 20000; ++i) {
    const auto key = static_cast<std::uint32_t>(random.below(model.size()));
    if (model[key] < 0)
      tree.insert(key, model[key] = some_mass(random));
    else if (random.below(2) == 0)
      tree.erase(key), model[key] = -1;
    else
      tree.update(key, model[key] = some_mass(random));
    float smallest = std::numeric_limits<float>::infinity();
    std::vector<std::uint32_t> held;
    for (std::uint32_t k = 0; k < model.size(); ++k) {
      if (model[k] > 0) smallest = std::min(smallest, model[k]);
      if (model[k] >= 0) held.push_back(k);
    }
    ASSERT_EQ(tree.held(), held.size());
    if (held.empty()) continue;
    ASSERT_EQ(tree.smallest(), smallest);
    const auto rank = static_cast<std::size_t>(random.below(held.size()));
    ASSERT_EQ(tree.nth(rank), held[rank]);
  }
}

TEST(MassTree, VisitsAtMostTheLogarithmOfItsKeysPlusTwoNodes) {
  MassTree tree;
  std::uint32_t keys = 0;
  Random random(5);
  for (const std::uint32_t size :
       {1U, 2U, 16U, 17U, 128U, 129U, 10000U, 100000U, 1000000U, 10000000U}) {
    for (; keys < size; ++keys) tree.insert(keys, 1.0F);
    const std::uint64_t before = tree.nodes_visited();
    tree.find(random.uniform() * tree.total());
    EXPECT_LE(static_cast<double>(tree.nodes_visited() - before), std::log2(size) + 2) << size;
  }
}

TEST(MassTree, FindsManyTargetsAsItFindsEach) {
  for (const std::uint32_t keys : {1U, 15U, 17U, 129U, 1000U, 70000U}) {
    Random random(keys);
    MassTree tree;
    for (std::uint32_t key = 0; key < keys; ++key) tree.insert(key, some_mass(random));
    tree.update(keys / 2, 1.0F);
    for (const std::size_t count : {0U, 1U, 16U, 17U, 300U}) {
      std::vector<double> targets;
      for (std::size_t i = 0; i < count; ++i) targets.push_back(random.uniform() * tree.total());
      std::vector<MassTree::Key> found(count);
      const std::uint64_t before = tree.nodes_visited();
      tree.find(targets, found);
      const std::uint64_t together = tree.nodes_visited() - before;
      for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(found[i], tree.find(targets[i]));
      EXPECT_EQ(tree.nodes_visited() - before, 2 * together);
    }
  }
}

TEST(MassTree, ClampsPrioritiesToNormalFloats) {
  EXPECT_EQ(to_mass(0), 0);
  EXPECT_EQ(to_mass(1e-300), std::numeric_limits<float>::min());
  EXPECT_EQ(to_mass(1e300), std::numeric_limits<float>::max());
  EXPECT_EQ(to_mass(0.5), 0.5F);
}

}  // namespace
}  // namespace troupe::replay
