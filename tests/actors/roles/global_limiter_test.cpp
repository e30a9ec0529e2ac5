// One ratio over several shards: the arithmetic step by step.
#include "actors/roles/global_limiter.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe::actors {
namespace {

using testing::HasSubstr;

// SPI 4, min size 10, error buffer 20: inserts to (40 + 20) / 4 = 15 items without samples.
constexpr replay::LimiterOptions kOptions{10, 4, 20};

ShardState state(std::uint64_t inserted, std::uint64_t waiting = 0, std::uint32_t epoch = 1,
                 std::uint64_t restored = 0) {
  return {.epoch = epoch,
          .restored = restored,
          .inserted = inserted,
          .held = inserted,
          .mass = static_cast<double>(inserted),
          .waiting = waiting};
}

// The shard obeys the grant.
void obey(GlobalLimiter& limiter, const Grant& grant, ShardState state) {
  state.serial = grant.serial;
  state.allowed = grant.allowed;
  limiter.report(grant.shard, state);
}

TEST(GlobalLimiter, AddsUpWhatAllShardsInsertedAgainstItsOwnSamples) {
  GlobalLimiter limiter(kOptions);
  limiter.report(0, state(6));
  EXPECT_FALSE(limiter.can_sample(1));
  EXPECT_EQ(limiter.sample_block_reason(1), "sample waits for min_size 6/10");
  limiter.report(1, state(5));
  EXPECT_EQ(limiter.inserted(), 11U);
  EXPECT_DOUBLE_EQ(limiter.cursor(), 44);
  EXPECT_EQ(limiter.room(), 4U);  // (60 - 44) / 4
  EXPECT_TRUE(limiter.can_sample(24));
  EXPECT_FALSE(limiter.can_sample(25));
  EXPECT_THAT(limiter.sample_block_reason(25),
              HasSubstr("cursor 44 - 25 samples would fall below 20"));
  limiter.commit_sample(24);
  EXPECT_EQ(limiter.room(), 10U);
  EXPECT_DOUBLE_EQ(limiter.measured_spi(), 24);  // of the one item beyond min_size
}

TEST(GlobalLimiter, LetsTheWaitingChunkInAndGivesIdleShardsNothing) {
  GlobalLimiter limiter(kOptions);
  limiter.report(0, state(0));
  limiter.report(1, state(0));
  EXPECT_TRUE(limiter.grants().empty());  // nobody asked, nobody is known to be busy
  limiter.report(1, state(0, 3));
  const auto grants = limiter.grants();
  ASSERT_EQ(grants.size(), 1U);
  EXPECT_EQ(grants[0].shard, 1U);
  EXPECT_EQ(grants[0].allowed, 3U);
  EXPECT_TRUE(limiter.grants().empty());  // it is under way
  obey(limiter, grants[0], state(3));
  // Busy now: half of what it may have is used up, so it gets the rest of the room ahead of need.
  const auto more = limiter.grants();
  ASSERT_EQ(more.size(), 1U);
  EXPECT_EQ(more[0].shard, 1U);
  EXPECT_EQ(more[0].allowed, 15U);
}

TEST(GlobalLimiter, TakesUnusedLeaveBackForAChunkThatWaits) {
  GlobalLimiter limiter(kOptions);
  limiter.report(0, state(0, 2));
  limiter.report(1, state(0));
  Grant grant = limiter.grants().at(0);
  obey(limiter, grant, state(2));
  grant = limiter.grants().at(0);
  EXPECT_EQ(grant.allowed, 15U);  // all the room
  obey(limiter, grant, state(2));
  limiter.report(1, state(0, 3));
  auto grants = limiter.grants();
  ASSERT_EQ(grants.size(), 1U);
  EXPECT_EQ(grants[0].shard, 0U);
  EXPECT_EQ(grants[0].allowed, 12U);
  EXPECT_TRUE(limiter.grants().empty());  // not twice
  // The shard had inserted one more before it heard of it.
  obey(limiter, grants[0], state(3));
  grants = limiter.grants();
  ASSERT_EQ(grants.size(), 1U);
  EXPECT_EQ(grants[0].shard, 1U);
  EXPECT_EQ(grants[0].allowed, 3U);
}

TEST(GlobalLimiter, LetsNobodyOvertakeAChunkThatDoesNotFitYet) {
  GlobalLimiter limiter(kOptions);
  limiter.report(0, state(13, 3));
  limiter.report(1, state(0, 1));
  EXPECT_TRUE(limiter.grants().empty());  // room 2: the first waits for 3
  limiter.commit_sample(4);
  const auto grants = limiter.grants();
  ASSERT_EQ(grants.size(), 1U);
  EXPECT_EQ(grants[0].shard, 0U);
  limiter.commit_sample(4);
  EXPECT_EQ(limiter.grants().at(0).shard, 1U);
}

TEST(GlobalLimiter, CountsWhatAShardLostWhenItComesBackWithLess) {
  GlobalLimiter limiter(kOptions);
  limiter.report(0, state(12));
  limiter.report(1, state(8));
  limiter.commit_sample(40);
  EXPECT_DOUBLE_EQ(limiter.cursor(), 40);
  limiter.gone(1);
  EXPECT_EQ(limiter.held(), 12U);
  EXPECT_DOUBLE_EQ(limiter.cursor(), 40);  // what it inserted was sampled, too
  limiter.report(1, state(8));             // a late message of the dead one: it holds it again
  limiter.report(1, state(5, 0, 2, 5));
  EXPECT_EQ(limiter.lost(), 3U);
  EXPECT_EQ(limiter.inserted(), 20U);
  EXPECT_DOUBLE_EQ(limiter.cursor(), 40);
  limiter.report(1, state(8));  // and again, of an old epoch
  EXPECT_EQ(limiter.held(), 17U);
}

TEST(GlobalLimiter, InsertsPassWhenTheDeadLeftTooFewToSample) {
  GlobalLimiter limiter(kOptions);
  limiter.report(0, state(3));
  limiter.report(1, state(12));
  EXPECT_EQ(limiter.room(), 0U);
  limiter.gone(1);
  EXPECT_FALSE(limiter.can_sample(1));
  EXPECT_EQ(limiter.room(), 7U);  // to min_size
  limiter.report(0, state(3, 8));
  EXPECT_EQ(limiter.grants().at(0).allowed, 11U);
}

TEST(GlobalLimiter, PrefilledItemsMeetMinSizeAndOweNothing) {
  GlobalLimiter limiter(kOptions);
  ShardState filled = state(0);
  filled.prefilled = filled.held = 500;
  limiter.report(0, filled);
  EXPECT_DOUBLE_EQ(limiter.cursor(), 40);
  EXPECT_TRUE(limiter.can_sample(20));
  EXPECT_FALSE(limiter.can_sample(21));
  EXPECT_EQ(limiter.room(), 5U);
}

TEST(GlobalLimiter, WithoutARatioEverythingIsAllowed) {
  GlobalLimiter limiter({10, 0, 0});
  limiter.report(0, state(10));
  EXPECT_EQ(limiter.grants().at(0).allowed, GlobalLimiter::kUnlimited);
  EXPECT_TRUE(limiter.grants().empty());
  EXPECT_TRUE(limiter.can_sample(1000000));
}

TEST(GlobalLimiter, SendsAGrantAgainUntilTheShardObeysIt) {
  GlobalLimiter limiter(kOptions);
  limiter.report(0, state(0, 3));
  const Grant grant = limiter.grants().at(0);
  ASSERT_EQ(limiter.unacknowledged().size(), 1U);
  EXPECT_EQ(limiter.unacknowledged()[0].serial, grant.serial);
  obey(limiter, grant, state(0, 3));
  EXPECT_TRUE(limiter.unacknowledged().empty());
}

TEST(GlobalLimiter, ASavedStateGoesOnWhereItsUpdatesWere) {
  GlobalLimiter limiter(kOptions);
  limiter.report(0, state(30));
  limiter.report(1, state(20));
  limiter.commit_sample(160);
  // Two batches of 16 wait for their updates and die with the sampler.
  const std::string saved = limiter.save(128);
  GlobalLimiter restored(kOptions);
  ASSERT_TRUE(restored.load(saved));
  EXPECT_EQ(restored.samples(), 128U);
  EXPECT_EQ(restored.inserted(), 50U);
  EXPECT_FALSE(restored.can_sample(1));  // no shard has spoken
  restored.report(0, state(30, 0, 2, 30));
  restored.report(1, state(18, 0, 2, 18));
  EXPECT_EQ(restored.inserted(), 50U);
  EXPECT_EQ(restored.lost(), 2U);
  EXPECT_DOUBLE_EQ(restored.cursor(), 72);
  // A learner alone came back: its shard inserted on.
  GlobalLimiter alone(kOptions);
  ASSERT_TRUE(alone.load(saved));
  alone.report(0, state(33));
  EXPECT_EQ(alone.inserted(), 53U);
  for (const char* bad : {"", "{}", "[1]", "{\"shards\":[{}]}"})
    EXPECT_FALSE(GlobalLimiter(kOptions).load(bad)) << bad;
}

TEST(GlobalLimiter, OtherOptionsMoveTheCursorSoThatNothingIsOwedUnderTheOldOnes) {
  GlobalLimiter limiter(kOptions);
  limiter.report(0, state(100));
  limiter.commit_sample(350);  // cursor 50, 10 above the middle
  GlobalLimiter changed({20, 16, 64});
  ASSERT_TRUE(changed.load(limiter.save(350)));
  EXPECT_DOUBLE_EQ(changed.cursor(), 16 * 20 + 10);
  GlobalLimiter narrow({20, 2, 4});
  ASSERT_TRUE(narrow.load(limiter.save(350)));
  EXPECT_DOUBLE_EQ(narrow.cursor(), 2 * 20 + 4);
  GlobalLimiter larger({200, 2, 4});
  ASSERT_TRUE(larger.load(limiter.save(350)));
  EXPECT_DOUBLE_EQ(larger.cursor(), 2 * 100);  // min_size is not reached any more
}

// What samplers that share a ratio are told of each other.
ShardState shared_state(std::uint64_t inserted, std::uint64_t sampled, std::uint64_t own,
                        std::uint32_t epoch = 1, std::uint64_t restored = 0) {
  ShardState shard = state(inserted, 0, epoch, restored);
  shard.sampled = sampled;
  shard.own = own;
  return shard;
}

TEST(GlobalLimiter, CountsWhatOthersDrawWhereSamplersShareTheRatio) {
  GlobalLimiter limiter(kOptions, true), alone(kOptions);
  limiter.report(0, shared_state(12, 30, 10));
  limiter.commit_sample(10);
  EXPECT_EQ(limiter.samples(), 30U);
  EXPECT_DOUBLE_EQ(limiter.cursor(), 18);
  alone.report(0, shared_state(12, 30, 10));
  EXPECT_EQ(alone.samples(), 0U);
  limiter.report(1, shared_state(3, 4, 0));
  EXPECT_EQ(limiter.samples(), 34U);
  limiter.commit_sample(2);  // under way: counted at once, and not again when the shard tells of it
  EXPECT_EQ(limiter.samples(), 36U);
  limiter.report(1, shared_state(3, 6, 2));
  EXPECT_EQ(limiter.samples(), 36U);
  limiter.report(1, shared_state(3, 9, 2));
  EXPECT_EQ(limiter.samples(), 39U);
  // A shard's new life counts from 0; what was drawn of the old one stays drawn.
  limiter.report(1, shared_state(3, 5, 1, 2, 3));
  EXPECT_EQ(limiter.samples(), 43U);
}

TEST(GlobalLimiter, GoesOnSharingFromWhatAnotherSamplerSaved) {
  GlobalLimiter one(kOptions, true);
  one.report(0, shared_state(12, 30, 10));
  one.commit_sample(10);
  one.commit_sample(5);  // waits, and dies with it
  GlobalLimiter two(kOptions, true);
  ASSERT_TRUE(two.load(one.save(10)));
  EXPECT_EQ(two.samples(), 30U);
  two.report(0, shared_state(13, 36, 0));  // the same life of the shard: 6 more by others
  EXPECT_EQ(two.samples(), 36U);
  GlobalLimiter resumed(kOptions, true);
  ASSERT_TRUE(resumed.load(one.save(10)));
  resumed.report(0, shared_state(12, 4, 4, 2, 12));
  resumed.commit_sample(4);
  EXPECT_EQ(resumed.samples(), 34U);
}

TEST(GlobalLimiter, BeginsALeadWithoutTheLeaveOfTheLastOne) {
  GlobalLimiter limiter(kOptions, true);
  limiter.report(0, state(0, 3));
  auto grants = limiter.grants();
  ASSERT_EQ(grants.size(), 1U);
  EXPECT_EQ(grants[0].lead, 0U);
  obey(limiter, grants[0], state(0, 3));
  EXPECT_TRUE(limiter.grants().empty());
  limiter.begin_lead(2);
  grants = limiter.grants();
  ASSERT_EQ(grants.size(), 1U);
  EXPECT_EQ(grants[0].lead, 2U);
  EXPECT_EQ(grants[0].allowed, 3U);
}

}  // namespace
}  // namespace troupe::actors
