// Which shard an episode goes to.
#include "actors/roles/shard_router.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace troupe::actors {
namespace {

using Counts = std::vector<std::size_t>;

TEST(ShardRouter, KeepsAnEpisodeOnItsShardAndSpreadsNewOnes) {
  ShardRouter router(1);
  router.set_live({true, true, true});
  const Counts none;
  EXPECT_EQ(router.route(0, true, none), 1U);
  EXPECT_EQ(router.route(1, true, none), 2U);
  EXPECT_EQ(router.route(2, true, none), 0U);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(router.route(0, false, Counts{0, 9, 0}), 1U);
  EXPECT_EQ(router.route(0, true, none), 1U);
}

TEST(ShardRouter, PrefersTheShardThatOwesTheFewestAnswers) {
  ShardRouter router(0);
  router.set_live({true, true, true});
  EXPECT_EQ(router.route(0, true, Counts{2, 1, 3}), 1U);
  EXPECT_EQ(router.route(0, true, Counts{2, 1}), 2U);  // one that was just added
}

TEST(ShardRouter, LeavesADeadShardInMidEpisodeAndTakesNewOnesUp) {
  ShardRouter router(0);
  router.set_live({true, true});
  EXPECT_EQ(router.route(5, true, {}), 0U);
  router.set_live({false, true});
  EXPECT_EQ(router.route(5, false, {}), 1U);
  router.set_live({true, true, true});
  EXPECT_EQ(router.route(5, false, {}), 1U);
  EXPECT_EQ(router.route(5, true, {}), 2U);
}

TEST(ShardRouter, WaitsForItsShardWhileNoneIsThere) {
  ShardRouter router(1);
  EXPECT_EQ(router.route(3, true, {}), 0U);  // nobody has said how many there are
  router.set_live({false, false});
  EXPECT_FALSE(router.any_live());
  EXPECT_EQ(router.route(3, false, {}), 0U);
  EXPECT_EQ(router.route(3, true, {}), 0U);
}

TEST(ShardRouter, GoesOnAfterARestoreAndRefusesDamage) {
  ShardRouter router(0);
  router.set_live({true, true, true});
  (void)router.route(0, true, {});
  (void)router.route(1, true, {});
  std::vector<std::uint8_t> bytes;
  router.save(bytes);
  ShardRouter restored(7);
  restored.set_live({true, true, true});
  ASSERT_TRUE(restored.load(bytes));
  EXPECT_EQ(restored.route(1, false, {}), 1U);
  EXPECT_EQ(restored.route(9, true, {}), 2U);
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(restored.load(std::span(bytes).first(size))) << size;
}

}  // namespace
}  // namespace troupe::actors
