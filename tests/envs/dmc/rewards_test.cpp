// Reward shaping against closed forms.
#include "envs/dmc/rewards.hpp"

#include <gtest/gtest.h>

namespace troupe::envs::dmc {
namespace {

TEST(Tolerance, IsOneInsideTheInterval) {
  for (const Sigmoid kind : {Sigmoid::kGaussian, Sigmoid::kLinear, Sigmoid::kQuadratic})
    for (const double x : {-1.0, 0.0, 2.0})
      EXPECT_EQ(tolerance(x, {.low = -1, .high = 2, .margin = 3, .kind = kind}), 1);
}

TEST(Tolerance, FallsToItsValueAtTheMarginOnBothSides) {
  for (const Sigmoid kind : {Sigmoid::kGaussian, Sigmoid::kLinear, Sigmoid::kQuadratic})
    for (const double x : {-4.0, 5.0})
      EXPECT_NEAR(
          tolerance(x, {.low = -1, .high = 2, .margin = 3, .kind = kind, .value_at_margin = 0.3}),
          0.3, 1e-12);
}

TEST(Tolerance, IsAnIndicatorWithoutMargin) {
  EXPECT_EQ(tolerance(2.0001, {.low = -1, .high = 2}), 0);
  EXPECT_EQ(tolerance(2, {.low = -1, .high = 2}), 1);
}

TEST(Tolerance, TakesHalfOpenIntervals) {
  const Tolerance fast{
      .low = 10, .high = kUnbounded, .margin = 10, .kind = Sigmoid::kLinear, .value_at_margin = 0};
  EXPECT_EQ(tolerance(1e9, fast), 1);
  EXPECT_DOUBLE_EQ(tolerance(4, fast), 0.4);
  EXPECT_EQ(tolerance(-3, fast), 0);
}

TEST(Tolerance, HasTheShapesOfItsSigmoids) {
  EXPECT_NEAR(tolerance(1, {.margin = 2}), std::pow(0.1, 0.25), 1e-12);  // 0.1^(x²) at x = 1/2
  EXPECT_DOUBLE_EQ(tolerance(0.5, {.margin = 1, .kind = Sigmoid::kQuadratic, .value_at_margin = 0}),
                   0.75);
  EXPECT_EQ(tolerance(2, {.margin = 1, .kind = Sigmoid::kQuadratic, .value_at_margin = 0}), 0);
}

}  // namespace
}  // namespace troupe::envs::dmc
