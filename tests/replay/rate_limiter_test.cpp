// The limiter walked step by step, with the arithmetic beside.
#include "replay/rate_limiter.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "envs/spec/random.hpp"

namespace troupe::replay {
namespace {

using ::testing::HasSubstr;

// min_size 10, SPI 4, error buffer 8: the cursor lives in [4 x 10 - 8, 4 x 10 + 8] = [32, 48].
constexpr LimiterOptions kOptions{.min_size = 10, .samples_per_insert = 4, .error_buffer = 8};

RateLimiter copy_of(const RateLimiter& limiter, const LimiterOptions& options, bool& changed) {
  std::vector<std::uint8_t> bytes;
  ByteWriter out(bytes);
  limiter.save(out);
  ByteReader in(bytes);
  RateLimiter copy(options);
  changed = copy.load(in);
  EXPECT_TRUE(in.finished());
  return copy;
}

TEST(RateLimiter, WalksFromEmptyToBothEndsOfItsBand) {
  RateLimiter limiter(kOptions);
  EXPECT_FALSE(limiter.can_sample(1));  // holds 0 of 10
  EXPECT_EQ(limiter.sample_block_reason(1), "sample waits for min_size 0/10");
  EXPECT_TRUE(limiter.can_insert(9));
  limiter.commit_insert(9);  // cursor 9 x 4 = 36: in the band, but holds 9 of 10
  EXPECT_FALSE(limiter.can_sample(1));
  limiter.commit_insert(1);             // cursor 40
  EXPECT_TRUE(limiter.can_sample(8));   // 40 - 8 = 32 >= 32
  EXPECT_FALSE(limiter.can_sample(9));  // 40 - 9 = 31 < 32
  EXPECT_TRUE(limiter.can_insert(2));   // 40 + 2 x 4 = 48 <= 48
  EXPECT_FALSE(limiter.can_insert(3));  // 40 + 3 x 4 = 52 > 48
  limiter.commit_insert(2);             // cursor 48
  EXPECT_FALSE(limiter.can_insert(1));  // 48 + 4 = 52 > 48
  EXPECT_EQ(limiter.insert_block_reason(1),
            "insert waits for samples: cursor 48 + 1 items x 4 samples would pass 48");
  EXPECT_TRUE(limiter.can_sample(16));  // 48 - 16 = 32
  limiter.commit_sample(16);            // cursor 32
  EXPECT_FALSE(limiter.can_sample(1));
  EXPECT_EQ(limiter.sample_block_reason(1),
            "sample waits for inserts: cursor 32 - 1 samples would fall below 32");
  EXPECT_EQ(limiter.insert_block_reason(1), "");
  EXPECT_THAT(limiter.state_text(), HasSubstr("cursor 32 in [32, 48]; sample waits"));
  EXPECT_DOUBLE_EQ(limiter.measured_spi(), 8.0);  // 16 samples / (12 - 10) inserts
  EXPECT_TRUE(limiter.can_insert(0));
  EXPECT_TRUE(limiter.can_sample(0));
}

TEST(RateLimiter, HoldsOnlyMinSizeWithoutARatio) {
  RateLimiter limiter({.min_size = 3, .samples_per_insert = 0, .error_buffer = 0});
  EXPECT_TRUE(limiter.can_insert(1000000));
  limiter.commit_insert(2);
  EXPECT_FALSE(limiter.can_sample(1));
  limiter.commit_insert(1);
  EXPECT_TRUE(limiter.can_sample(1000000));
  limiter.commit_remove(1);
  EXPECT_EQ(limiter.sample_block_reason(1), "sample waits for min_size 2/3");
}

TEST(RateLimiter, KeepsARatioBelowOne) {
  // SPI 0.5, min_size 4, buffer 1: band [1, 3].
  RateLimiter limiter({.min_size = 4, .samples_per_insert = 0.5, .error_buffer = 1});
  limiter.commit_insert(4);            // cursor 2
  EXPECT_TRUE(limiter.can_sample(1));  // 1
  EXPECT_FALSE(limiter.can_sample(2));
  EXPECT_TRUE(limiter.can_insert(2));  // 3
  EXPECT_FALSE(limiter.can_insert(3));
}

TEST(RateLimiter, StaysWithinItsBandAndNeverWaitsOnBothSides) {
  Random random(5);
  RateLimiter limiter(kOptions);
  for (int i = 0; i < 100000; ++i) {
    const std::uint64_t inserts = 1 + random.below(2), samples = 1 + random.below(8);
    // One insert of 2 x 4 and one batch of 8 fit the band of 16 together.
    ASSERT_TRUE(limiter.can_insert(inserts) || limiter.can_sample(samples));
    if (random.below(2) == 0) {
      if (limiter.can_insert(inserts)) limiter.commit_insert(inserts);
    } else if (limiter.can_sample(samples)) {
      limiter.commit_sample(samples);
    }
    ASSERT_LE(limiter.cursor(), 48);
    ASSERT_TRUE(limiter.samples() == 0 || limiter.cursor() >= 32);
  }
  EXPECT_NEAR(limiter.measured_spi(), 4.0, 0.01);
}

TEST(RateLimiter, LetsInsertsPassWhileItemsThatLeftAreMissing) {
  RateLimiter limiter({.min_size = 4, .samples_per_insert = 2, .error_buffer = 2});  // [6, 10]
  limiter.commit_insert(5);                                                          // cursor 10
  EXPECT_FALSE(limiter.can_insert(1));                                               // 12 > 10
  limiter.commit_sample(1);                                                          // cursor 9
  limiter.commit_remove(2);                                                          // holds 3 of 4
  EXPECT_EQ(limiter.sample_block_reason(1), "sample waits for min_size 3/4");
  EXPECT_TRUE(limiter.can_insert(1));  // 11 > 10, but nothing else could move
  limiter.commit_insert(1);
  EXPECT_FALSE(limiter.can_insert(1));
  EXPECT_TRUE(limiter.can_sample(1));
  // Not before min_size was there at all.
  RateLimiter fresh({.min_size = 4, .samples_per_insert = 2, .error_buffer = 2});
  EXPECT_FALSE(fresh.can_insert(6));  // 12 > 10
}

TEST(RateLimiter, WalksAQueueFromEmptyToFullAndBack) {
  RateLimiter queue({.kind = LimiterKind::kQueue, .size = 3});
  EXPECT_EQ(queue.state_text(),
            "queue 0/3; sample waits for inserts: 1 items are wanted and the queue holds 0");
  EXPECT_FALSE(queue.can_sample(1));
  EXPECT_TRUE(queue.can_sample(0));
  EXPECT_TRUE(queue.can_insert(3));
  EXPECT_FALSE(queue.can_insert(4));
  EXPECT_EQ(queue.insert_refusal(3), "");
  EXPECT_EQ(queue.insert_refusal(4),
            "it completes 4 items at once, more than the queue of 3 ever holds");
  queue.commit_insert(2);  // 2 of 3
  EXPECT_TRUE(queue.can_sample(2));
  EXPECT_FALSE(queue.can_sample(3));
  EXPECT_EQ(queue.sample_block_reason(3),
            "sample waits for inserts: 3 items are wanted and the queue holds 2");
  EXPECT_TRUE(queue.can_insert(1));
  EXPECT_FALSE(queue.can_insert(2));
  queue.commit_insert(1);  // full
  EXPECT_EQ(queue.state_text(),
            "queue 3/3; insert waits for samples: 1 more items do not fit the queue, which holds 3 "
            "of 3");
  queue.commit_sample(1);  // drawn items leave: the table says so
  queue.commit_remove(1);  // 2 of 3
  EXPECT_TRUE(queue.can_insert(1));
  queue.commit_sample(2);
  queue.commit_remove(2);
  EXPECT_FALSE(queue.can_sample(1));
  EXPECT_EQ(queue.held(), 0U);
}

TEST(RateLimiter, NamesAStackInItsReasons) {
  RateLimiter stack({.kind = LimiterKind::kStack, .size = 1});
  EXPECT_THAT(stack.sample_block_reason(1), HasSubstr("the stack holds 0"));
  stack.commit_insert(1);
  EXPECT_EQ(stack.state_text(),
            "stack 1/1; insert waits for samples: 1 more items do not fit the stack, which holds 1 "
            "of 1");
  bool changed = true;
  const RateLimiter copy = copy_of(stack, {.kind = LimiterKind::kStack, .size = 1}, changed);
  EXPECT_FALSE(changed);
  EXPECT_FALSE(copy.can_insert(1));
  EXPECT_TRUE(copy_of(stack, {.kind = LimiterKind::kStack, .size = 2}, changed).can_insert(1));
  EXPECT_TRUE(changed);
}

TEST(RateLimiter, GoesOnWhereItWasAfterALoad) {
  RateLimiter limiter(kOptions);
  limiter.commit_insert(14);
  limiter.commit_sample(13);
  limiter.commit_remove(2);
  bool changed = true;
  const RateLimiter copy = copy_of(limiter, kOptions, changed);
  EXPECT_FALSE(changed);
  EXPECT_EQ(copy.cursor(), limiter.cursor());  // 14 x 4 - 13 = 43
  EXPECT_EQ(copy.held(), 12U);
}

TEST(RateLimiter, OwesNothingUnderNewOptions) {
  RateLimiter limiter(kOptions);
  limiter.commit_insert(100000);
  limiter.commit_sample(399965);  // cursor 35, 5 below the middle
  bool changed = false;
  RateLimiter copy =
      copy_of(limiter, {.min_size = 10, .samples_per_insert = 8, .error_buffer = 16}, changed);
  EXPECT_TRUE(changed);
  EXPECT_EQ(copy.cursor(), 75);  // 5 below 8 x 10
  EXPECT_TRUE(copy.can_insert(1));
  EXPECT_TRUE(copy.can_sample(11));  // 75 - 11 = 64
  EXPECT_FALSE(copy.can_sample(12));

  copy = copy_of(limiter, {.min_size = 10, .samples_per_insert = 4, .error_buffer = 2}, changed);
  EXPECT_EQ(copy.cursor(), 38);  // 5 below is outside the new buffer of 2
  copy =
      copy_of(limiter, {.min_size = 200000, .samples_per_insert = 4, .error_buffer = 8}, changed);
  EXPECT_EQ(copy.cursor(), 400000);  // before min_size: 4 x 100000 held
  EXPECT_TRUE(copy.can_insert(100000));
  copy = copy_of(limiter, {.min_size = 10, .samples_per_insert = 0, .error_buffer = 0}, changed);
  EXPECT_TRUE(copy.can_insert(1000) && copy.can_sample(1000));
}

}  // namespace
}  // namespace troupe::replay
