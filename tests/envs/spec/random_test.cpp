// The random stream against its published answers, and named streams that never meet.
#include "envs/spec/random.hpp"

#include <gtest/gtest.h>

#include <set>

namespace troupe {
namespace {

// Vectors: the reference C programs of prng.di.unimi.it, with seed 0 and with state 1, 2, 3, 4.
TEST(Random, GivesThePublishedNumbers) {
  std::uint64_t seed = 0;
  EXPECT_EQ(splitmix64(seed), 0xe220a8397b1dcdafULL);
  Random random;
  random.set_state({1, 2, 3, 4});
  for (const std::uint64_t wanted :
       {41943041ULL, 58720359ULL, 3588806011781223ULL, 3591011842654386ULL})
    EXPECT_EQ(random(), wanted);
}

TEST(Random, GoesOnFromASavedState) {
  Random random(0);
  (void)random.normal();
  Random restored(9);
  restored.set_state(random.state());
  for (int i = 0; i < 100; ++i) EXPECT_EQ(restored.normal(), random.normal());
}

TEST(Random, DrawsUniformAndNormalNumbersOfTheRightMoments) {
  Random random(5);
  constexpr int kDraws = 100000;
  double uniform = 0, normal = 0, squares = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double u = random.uniform(2, 4), n = random.normal();
    ASSERT_GE(u, 2);
    ASSERT_LT(u, 4);
    uniform += u;
    normal += n;
    squares += n * n;
  }
  // 5 standard errors each.
  EXPECT_NEAR(uniform / kDraws, 3, 0.0092);
  EXPECT_NEAR(normal / kDraws, 0, 0.016);
  EXPECT_NEAR(squares / kDraws, 1, 0.023);
}

TEST(Random, DrawsIntegersBelowABoundEquallyOften) {
  Random random(6);
  std::array<int, 3> counts{};
  for (int i = 0; i < 30000; ++i) ++counts.at(random.below(3));
  for (const int count : counts) EXPECT_NEAR(count, 10000, 410);  // 5 standard deviations
  EXPECT_EQ(random.below(1), 0U);
}

TEST(StreamSeed, DiffersInEveryPart) {
  std::set<std::uint64_t> seeds;
  std::size_t made = 0;
  for (const std::uint64_t run : {0, 1})
    for (const char* purpose : {"environment", "episode", ""})
      for (std::uint64_t index = 0; index < 20; ++index)
        for (std::uint64_t subindex = 0; subindex < 20; ++subindex, ++made)
          seeds.insert(stream_seed(run, purpose, index, subindex));
  EXPECT_EQ(seeds.size(), made);
}

}  // namespace
}  // namespace troupe
