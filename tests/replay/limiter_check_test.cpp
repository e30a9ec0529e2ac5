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

TEST(CheckLimiter, DividesOverShards) {
  const auto limits = check_limiter({.capacity = 1000001, .min_size = 1001, .shards = 2});
  ASSERT_TRUE(limits) << limits.error().message;
  EXPECT_EQ(limits->capacity, 500000);
  EXPECT_EQ(limits->limiter.min_size, 501);
  EXPECT_DOUBLE_EQ(limits->limiter.error_buffer, 1601.6);
}

TEST(CheckLimiter, AsksForNoBandWithoutARatio) {
  EXPECT_EQ(refusal({.min_size = 1, .samples_per_insert = 0}), "");
}

TEST(CheckLimiter, RefusesAMinSizeAboveTheCapacity) {
  EXPECT_THAT(refusal({.capacity = 100, .min_size = 101}),
              HasSubstr("min_size 101 exceeds capacity 100"));
  EXPECT_THAT(refusal({.capacity = 100, .min_size = 100, .shards = 3}),
              HasSubstr("34 and exceeds capacity / shards = 33"));
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

TEST(CheckLimiter, RefusesNumbersOutOfRange) {
  EXPECT_THAT(refusal({.shards = 0}), HasSubstr("shards is 0"));
  EXPECT_THAT(refusal({.samples_per_insert = -1}), HasSubstr("samples_per_insert"));
  EXPECT_THAT(refusal({.error_buffer = 0.0}), HasSubstr("error_buffer"));
}

}  // namespace
}  // namespace troupe::replay
