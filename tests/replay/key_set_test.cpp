// Ranks against a sorted set.
#include "replay/selectors/key_set.hpp"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "envs/spec/random.hpp"

namespace troupe::replay {
namespace {

TEST(KeySet, KnowsItsMembersByRankAsASortedSetDoes) {
  Random random(3);
  for (const std::uint32_t range : {1U, 64U, 513U, 8193U, 140000U}) {
    KeySet keys;
    std::set<std::uint32_t> reference;
    const auto check = [&] {
      ASSERT_EQ(keys.size(), reference.size());
      const std::vector<std::uint32_t> sorted(reference.begin(), reference.end());
      for (int i = 0; i < 200 && !sorted.empty(); ++i) {
        const std::size_t rank = random.below(sorted.size());
        ASSERT_EQ(keys.nth(rank), sorted[rank]) << "rank " << rank << " of " << sorted.size();
      }
    };
    for (std::uint32_t key = 0; key < range; ++key) {
      keys.insert(key);
      reference.insert(key);
    }
    check();
    for (std::uint32_t i = 0; i < range; ++i) {
      const auto key = static_cast<std::uint32_t>(random.below(range + range / 3));
      if (reference.erase(key) > 0)
        keys.erase(key);
      else {
        keys.insert(key);
        reference.insert(key);
      }
    }
    check();
    while (!reference.empty()) {
      keys.erase(*reference.begin());
      reference.erase(reference.begin());
    }
    check();
    keys.insert(range - 1);
    reference.insert(range - 1);
    check();
  }
}

TEST(KeySet, TakesAThirdOfAByteAKeyAtMost) {
  KeySet keys;
  for (std::uint32_t key = 0; key < 1000000; ++key) keys.insert(key);
  EXPECT_LT(keys.memory_bytes(), 333333U);
}

}  // namespace
}  // namespace troupe::replay
