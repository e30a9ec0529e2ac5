// The arithmetic of reductions, 16-bit floats included.
#include "learners/collectives/elements.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "learners/collectives/half.hpp"

namespace troupe::learners {
namespace {

TEST(Elements, AddInTheOrderOfTheSources) {
  // (1e8 + 1) - 1e8 is 0 in f32 and (1e8 - 1e8) + 1 is 1.
  std::vector<float> a(5000, 1e8F), b(5000, 1.0F), c(5000, -1e8F), out(5000);
  const void* sources[] = {a.data(), b.data(), c.data()};
  void* destinations[] = {out.data()};
  reduce(ElementType::kF32, ReduceOp::kSum, 5000, sources, destinations);
  EXPECT_EQ(out, std::vector<float>(5000, 0.0F));
  const void* other[] = {a.data(), c.data(), b.data()};
  reduce(ElementType::kF32, ReduceOp::kSum, 5000, other, destinations);
  EXPECT_EQ(out, std::vector<float>(5000, 1.0F));
}

TEST(Elements, SumShortFloatsInLongOnesAndRoundOnce) {
  // 2048 + 1 is not a binary16 and rounds to 2048: three ones in turn would leave 2048.
  std::vector<F16> big(7, F16(2048.0F)), one(7, F16(1.0F)), out(7);
  const void* sources[] = {big.data(), one.data(), one.data(), one.data()};
  void* destinations[] = {out.data()};
  reduce(ElementType::kF16, ReduceOp::kSum, 7, sources, destinations);
  for (const F16 value : out) EXPECT_EQ(static_cast<float>(value), 2052.0F);  // 2051, to even
}

TEST(Elements, PartsCoverTheElementsOnce) {
  for (const std::int64_t count : {0, 1, 63, 64, 65, 1000, 100003})
    for (int parts = 1; parts <= 9; ++parts) {
      std::int64_t next = 0;
      for (int i = 0; i < parts; ++i) {
        const Part part = part_of(count, parts, i);
        EXPECT_EQ(part.begin, next);
        EXPECT_LE(part.begin, part.end);
        next = part.end;
      }
      EXPECT_EQ(next, count);
    }
}

TEST(ShortFloats, RoundTripEveryValue) {
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    F16 half;
    half.bits = static_cast<std::uint16_t>(bits);
    Bf16 brain;
    brain.bits = static_cast<std::uint16_t>(bits);
    const auto wide = static_cast<float>(half), other = static_cast<float>(brain);
    if (!std::isnan(wide)) {
      EXPECT_EQ(F16(wide).bits, half.bits);
    }
    if (!std::isnan(other)) {
      EXPECT_EQ(Bf16(other).bits, brain.bits);
    }
    EXPECT_EQ(std::isnan(static_cast<float>(F16(wide))), std::isnan(wide));
    EXPECT_EQ(std::isnan(static_cast<float>(Bf16(other))), std::isnan(other));
  }
}

TEST(ShortFloats, RoundToNearestEvenAndOverflowToInfinity) {
  EXPECT_EQ(static_cast<float>(F16(2049.0F)), 2048.0F);
  EXPECT_EQ(static_cast<float>(F16(2051.0F)), 2052.0F);
  EXPECT_EQ(static_cast<float>(F16(65519.0F)), 65504.0F);
  EXPECT_TRUE(std::isinf(static_cast<float>(F16(65520.0F))));
  EXPECT_EQ(static_cast<float>(F16(0x1p-25F)), 0.0F);
  EXPECT_EQ(static_cast<float>(F16(0x1.8p-24F)), 0x1p-23F);
  EXPECT_EQ(static_cast<float>(Bf16(257.0F)), 256.0F);
  EXPECT_EQ(static_cast<float>(Bf16(259.0F)), 260.0F);
  EXPECT_TRUE(std::isinf(static_cast<float>(Bf16(std::numeric_limits<float>::max()))));
}

}  // namespace
}  // namespace troupe::learners
