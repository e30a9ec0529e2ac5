// The arithmetic of reductions, 16-bit floats included.
#include "learners/collectives/elements.hpp"

#include <gtest/gtest.h>

#include <algorithm>
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

TEST(Elements, ReduceTwoSourcesAsTheyReduceMany) {
  // Two sources take a way of their own; a third one that changes nothing takes the other.
  std::vector<float> a(1003), b(1003), none(1003, -1e30F);
  for (std::size_t i = 0; i < a.size(); ++i) {
    a[i] = std::sin(static_cast<float>(i)) * 1e3F;
    b[i] = std::cos(static_cast<float>(i) * 3) * 1e-3F;
  }
  for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kMean, ReduceOp::kMin, ReduceOp::kMax}) {
    std::vector<float> x = a, y = b;
    const void* sources[] = {x.data(), y.data()};
    void* destinations[] = {x.data(), y.data()};
    reduce(ElementType::kF32, op, 1003, sources, destinations);
    EXPECT_EQ(x, y);
    for (std::size_t i = 0; i < a.size(); ++i) {
      const float sum = a[i] + b[i];
      const float expected = op == ReduceOp::kSum    ? sum
                             : op == ReduceOp::kMean ? sum / 2
                             : op == ReduceOp::kMin  ? std::min(a[i], b[i])
                                                     : std::max(a[i], b[i]);
      ASSERT_EQ(x[i], expected) << name_of(op);
    }
  }
  std::vector<float> out(1003), pair(1003);
  const void* three[] = {a.data(), b.data(), none.data()};
  const void* two[] = {a.data(), b.data()};
  void* to[] = {out.data()};
  void* to_pair[] = {pair.data()};
  reduce(ElementType::kF32, ReduceOp::kMax, 1003, three, to);
  reduce(ElementType::kF32, ReduceOp::kMax, 1003, two, to_pair);
  EXPECT_EQ(out, pair);
}

TEST(Elements, DivideExactly) {
  for (const int by : {1, 2, 3, 4, 7, 8}) {
    std::vector<float> values(300), expected(300);
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = std::sin(static_cast<float>(i)) * 1e-38F;  // denormals among them
      expected[i] = values[i] / static_cast<float>(by);
    }
    divide({values.data(), 300, ElementType::kF32}, by);
    EXPECT_EQ(values, expected) << by;
  }
  std::vector<std::int64_t> whole = {7, -7, 6};
  divide({whole.data(), 3, ElementType::kI64}, 2);
  EXPECT_EQ(whole, (std::vector<std::int64_t>{3, -3, 3}));
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
