// Impossible limiter settings are refused with their arithmetic; possible ones are divided over
// shards.
#include "replay/limiter_check.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe::replay {
namespace {

using ::testing::HasSubstr;

std::string refusal(const LimiterPlan& plan) {
  const auto limits = check_limiter(plan);
  return limits ? "" : limits.error().message;
}

TEST(FlushSteps, FillAQuarterOfTheBand) {
  EXPECT_EQ(band_items(6400, 64), 200);   // 2 x 6400 / 64
  EXPECT_EQ(flush_steps(200, 2, 2), 12);  // 200 / (4 x 2 x 2) = 12.5
  EXPECT_EQ(flush_steps(200, 64, 2), 1);  // 200 / 512
  EXPECT_EQ(flush_steps(band_items(1, 0), 2, 2), kMaxFlushSteps);
}

TEST(CheckLimiter, AcceptsTheDefaults) {
  const auto limits = check_limiter({});
  ASSERT_TRUE(limits) << limits.error().message;
  EXPECT_EQ(limits->limiter.error_buffer, 3200);  // 0.1 x 1000 x 32
  EXPECT_EQ(limits->limiter.min_size, 1000);
  EXPECT_EQ(limits->flush_steps, 25);  // 2 x 3200 / 32 = 200; 200 / (4 x 1 x 2)
}

TEST(CheckLimiter, DividesTheCapacityOverShardsAndKeepsOneRatioOverAll) {
  const auto limits = check_limiter({.capacity = 1000001, .min_size = 1001, .shards = 2});
  ASSERT_TRUE(limits) << limits.error().message;
  EXPECT_EQ(limits->capacity, 500000);
  EXPECT_EQ(limits->limiter.min_size, 1001);
  EXPECT_DOUBLE_EQ(limits->limiter.error_buffer, 3203.2);
}

TEST(CheckLimiter, AsksForNoBandWithoutARatio) {
  EXPECT_EQ(refusal({.min_size = 1, .samples_per_insert = 0}), "");
}

TEST(CheckLimiter, RefusesAMinSizeAboveTheCapacity) {
  EXPECT_THAT(refusal({.capacity = 100, .min_size = 101}),
              HasSubstr("min_size 101 exceeds capacity 100"));
  EXPECT_THAT(
      refusal({.capacity = 100, .min_size = 100, .shards = 3, .environment_actors = 2}),
      HasSubstr("min_size 100 exceeds what 2 of 3 shards hold, 2 x capacity / shards = 66"));
}

TEST(CheckLimiter, RefusesAnErrorBufferBelowOneInsert) {
  EXPECT_THAT(refusal({.samples_per_insert = 8, .error_buffer = 7.0}),
              HasSubstr("error_buffer 7 is below max(1, samples_per_insert) = 8"));
  EXPECT_THAT(refusal({.samples_per_insert = 0.25, .error_buffer = 0.5}),
              HasSubstr("max(1, samples_per_insert) = 1"));
}

TEST(CheckLimiter, RefusesABandWithoutRoomForWhatIsUnderWay) {
  // band 2 x 256 / 32 = 16; needed 1 + 2 x 256 / 32 = 17.
  const std::string message = refusal({.error_buffer = 256.0});
  EXPECT_THAT(message, HasSubstr("2 x 256 / 32 = 16 items"));
  EXPECT_THAT(message, HasSubstr("1 + 2 x 256 / 32 = 17"));
  EXPECT_THAT(message, HasSubstr("raise error_buffer to 272"));
  EXPECT_EQ(refusal({.error_buffer = 272.0}), "");
}

TEST(CheckLimiter, RefusesBuffersThatOneChunkWouldOverrun) {
  // Chunks complete up to flush 1 + 40 - 1 = 40 items; 39 x 32 = 1248 > 512.
  EXPECT_THAT(refusal({.error_buffer = 512.0, .environment_actors = 8, .n_step = 40}),
              HasSubstr("(40 - 1) x 32 = 1248"));
}

TEST(CheckLimiter, RefusesARatioAboveTheDrawsOfAnItem) {
  EXPECT_THAT(refusal({.samples_per_insert = 32, .max_times_sampled = 20}),
              HasSubstr("samples_per_insert 32 exceeds max_times_sampled 20"));
  EXPECT_EQ(refusal({.samples_per_insert = 32, .max_times_sampled = 33}), "");
  EXPECT_THAT(refusal({.max_times_sampled = -1}), HasSubstr("max_times_sampled is -1"));
}

TEST(CheckLimiter, RefusesToRemoveWhatTheRatioNeeds) {
  // 32 x 1000 + 3200 = 35200 items may have a draw left.
  EXPECT_THAT(refusal({.capacity = 35199, .samples_per_insert = 32, .max_times_sampled = 32}),
              HasSubstr("32 x 1000 + 3200 = 35200 items may wait for theirs and capacity 35199"));
  EXPECT_EQ(refusal({.capacity = 35200, .samples_per_insert = 32, .max_times_sampled = 32}), "");
}

TEST(CheckLimiter, RefusesAMinSizeThatABatchCouldEmpty) {
  EXPECT_THAT(refusal({.min_size = 255, .samples_per_insert = 0, .max_times_sampled = 1}),
              HasSubstr("min_size 255 is below the batch of 256"));
  EXPECT_EQ(refusal({.min_size = 256, .samples_per_insert = 0, .max_times_sampled = 1}), "");
}

TEST(CheckLimiter, GivesEachShardItsPartOfAQueue) {
  const auto limits = check_limiter({.capacity = 2000, .shards = 2, .kind = LimiterKind::kQueue});
  ASSERT_TRUE(limits) << limits.error().message;
  EXPECT_EQ(limits->capacity, 1000);
  EXPECT_EQ(limits->limiter, (LimiterOptions{.kind = LimiterKind::kQueue, .size = 1000}));
  EXPECT_EQ(limits->flush_steps, 250);  // 2000 / (4 x 1 x 2)
}

TEST(CheckLimiter, RefusesAQueueInWhichBothSidesCouldWait) {
  // Chunks of 266 / 8 = 33 steps complete up to 33 + 5 - 1 = 37 items.
  EXPECT_THAT(refusal({.capacity = 266, .n_step = 5, .kind = LimiterKind::kQueue}),
              HasSubstr("queue of capacity 266 / 1 shards = 266 items is below largest chunk + "
                        "batch - 1 = 37 + 256 - 1 = 292"));
  EXPECT_THAT(refusal({.capacity = 100, .kind = LimiterKind::kStack}), HasSubstr("stack of"));
  EXPECT_EQ(refusal({.capacity = 300, .n_step = 5, .kind = LimiterKind::kQueue}), "");
}

TEST(CheckQueue, NamesThePartThatContradictsIt) {
  constexpr LimiterOptions kQueueOf10{.kind = LimiterKind::kQueue, .size = 10};
  const TableParts good{.capacity = 10, .max_times_sampled = 1, .selector = "fifo"};
  const auto refused = [&](LimiterOptions limiter, auto change) {
    TableParts parts = good;
    change(limiter, parts);
    const auto checked = check_queue(limiter, parts);
    return checked ? std::string() : checked.error().message;
  };
  EXPECT_EQ(refused(kQueueOf10, [](auto&, auto&) {}), "");
  EXPECT_EQ(refused(kQueueOf10, [](auto&, auto& p) { p.capacity = 9; }),
            "queue of 10 items exceeds capacity 9: items would be removed undrawn");
  EXPECT_THAT(refused(kQueueOf10, [](auto&, auto& p) { p.capacity_bytes = 1; }),
              HasSubstr("cannot have capacity_bytes 1"));
  EXPECT_THAT(refused(kQueueOf10, [](auto&, auto& p) { p.max_times_sampled = 2; }),
              HasSubstr("max_times_sampled is 2"));
  EXPECT_THAT(refused(kQueueOf10, [](auto&, auto& p) { p.selector = "lifo"; }),
              HasSubstr("'fifo', not 'lifo'"));
  EXPECT_THAT(refused(kQueueOf10, [](auto& l, auto&) { l.kind = LimiterKind::kStack; }),
              HasSubstr("'lifo', not 'fifo'"));
  EXPECT_THAT(refused(kQueueOf10, [](auto& l, auto&) { l.samples_per_insert = 3; }),
              HasSubstr("samples_per_insert is 3"));
  EXPECT_THAT(refused(kQueueOf10, [](auto& l, auto&) { l.min_size = 2; }),
              HasSubstr("min_size is 2"));
  EXPECT_THAT(refused(kQueueOf10, [](auto& l, auto&) { l.size = 0; }), HasSubstr("at least 1"));
  EXPECT_THAT(refused(kQueueOf10, [](auto& l, auto&) { l.kind = LimiterKind::kRatio; }),
              HasSubstr("for queues and stacks only"));
}

TEST(CheckLimiter, RefusesNumbersOutOfRange) {
  EXPECT_THAT(refusal({.shards = 0}), HasSubstr("shards is 0"));
  EXPECT_THAT(refusal({.samples_per_insert = -1}), HasSubstr("samples_per_insert"));
  EXPECT_THAT(refusal({.error_buffer = 0.0}), HasSubstr("error_buffer"));
}

}  // namespace
}  // namespace troupe::replay
