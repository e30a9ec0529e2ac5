// The last steps of a run over several shards: all of them, and no more.
#include "actors/roles/step_limits.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "envs/spec/random.hpp"

namespace troupe::actors {
namespace {

using Limits = std::vector<std::uint64_t>;

TEST(StepShares, GiveOneShardEverythingAndSeveralTheirEvenPart) {
  StepShares one;
  one.restart(0, 300);
  EXPECT_TRUE(one.deal(5000));
  EXPECT_EQ(one.limits(), Limits{5000});
  EXPECT_FALSE(one.deal(5000));
  StepShares three;
  for (std::size_t i = 0; i < 3; ++i) three.restart(i, 100);
  EXPECT_TRUE(three.deal(1000));
  EXPECT_EQ(three.limits(), (Limits{334, 333, 333}));
}

TEST(StepShares, MoveWhatAnIdleShardDoesNotUseOnceItSaysSo) {
  StepShares shares;
  shares.restart(0, 0);
  shares.restart(1, 0);
  EXPECT_TRUE(shares.deal(100));
  shares.report(0, 50, 50);
  shares.report(1, 10, 50);
  EXPECT_TRUE(shares.deal(100));
  EXPECT_EQ(shares.limits(), (Limits{50, 30}));
  EXPECT_FALSE(shares.deal(100));  // it may not have heard of it
  shares.report(1, 20, 50);
  EXPECT_FALSE(shares.deal(100));
  shares.report(1, 25, 30);
  EXPECT_TRUE(shares.deal(100));
  EXPECT_EQ(shares.limits(), (Limits{60, 40}));
}

TEST(StepShares, WhatADeadShardLostIsDealtAgainByItsSuccessor) {
  StepShares shares;
  shares.restart(0, 0);
  shares.restart(1, 0);
  EXPECT_TRUE(shares.deal(100));
  shares.report(0, 50, 50);
  shares.report(1, 40, 50);
  shares.restart(1, 15);  // 25 are lost and count: 75 are left for both
  EXPECT_TRUE(shares.deal(75));
  EXPECT_EQ(shares.limits(), (Limits{55, 20}));
}

TEST(StepShares, WhatAShardHadThatLeavesIsTheOthers) {
  StepShares shares;
  shares.restart(0, 0);
  shares.restart(1, 0);
  EXPECT_TRUE(shares.deal(100));
  shares.report(0, 50, 50);
  shares.report(1, 20, 50);
  shares.hold(1);
  EXPECT_TRUE(shares.deal(100));  // half of what it does not use comes back
  EXPECT_EQ(shares.limits(), (Limits{50, 35}));
  shares.report(1, 22, 35);
  EXPECT_TRUE(shares.deal(100));  // it gets none of it again
  EXPECT_EQ(shares.limits(), (Limits{65, 35}));
  shares.leave(1);
  EXPECT_TRUE(shares.deal(78));  // its 22 are over
  EXPECT_EQ(shares.limits(), (Limits{78, 0}));
  shares.restart(1, 0);  // another one takes its place
  EXPECT_TRUE(shares.deal(98));
  EXPECT_EQ(shares.limits(), (Limits{88, 10}));
}

TEST(StepShares, AreUsedUpExactlyWhateverTheShardsDo) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    Random random(seed);
    const std::size_t count = 1 + random.below(5);
    StepShares shares;
    std::vector<std::uint64_t> inserted(count), obeyed(count), speed(count);
    for (std::size_t i = 0; i < count; ++i) {
      shares.restart(i, 0);
      speed[i] = random.below(4);
    }
    speed[0] = 3;
    const auto total = [&] { return std::accumulate(inserted.begin(), inserted.end(), 0UL); };
    for (int round = 0; total() < 1000; ++round) {
      ASSERT_LT(round, 20000) << "seed " << seed << ": " << total();
      shares.deal(1000);
      for (std::size_t i = 0; i < count; ++i) {
        if (random.below(3) == 0) obeyed[i] = shares.limits()[i];
        for (std::uint64_t n = random.below(speed[i] + 1); n > 0 && inserted[i] < obeyed[i]; --n)
          ++inserted[i];
        if (random.below(3) == 0) shares.report(i, inserted[i], obeyed[i]);
      }
      ASSERT_LE(total(), 1000U) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace troupe::actors
