// Elementary functions against the double ones of the standard library, over their whole range.
#include "learners/kernels/vector.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

namespace troupe::learners::kernels {
namespace {

// Largest relative error over a grid of [low, high].
double worst_error(Vector (*fast)(Vector), double (*exact)(double), double low, double high) {
  constexpr int kPoints = 200000;
  double worst = 0;
  for (int i = 0; i <= kPoints; ++i) {
    const auto x = static_cast<float>(low + (high - low) * i / kPoints);
    float lanes[kLanes];
    store(lanes, fast(broadcast(x)));
    const double wanted = exact(static_cast<double>(x));
    const double error = std::fabs(static_cast<double>(lanes[kLanes - 1]) - wanted);
    worst = std::max(worst, wanted == 0 ? error : error / std::fabs(wanted));
  }
  return worst;
}

float first(Vector value) {
  float lanes[kLanes];
  store(lanes, value);
  return lanes[0];
}

TEST(Vector, ExpIsAccurateWhereItIsNormal) {
  EXPECT_LT(worst_error(exp, std::exp, -87, 88), 2e-7);
  EXPECT_LT(worst_error(exp, std::exp, -1, 1), 2e-7);
}

TEST(Vector, ExpMinusOneKeepsItsDigitsNearZero) {
  EXPECT_LT(worst_error(exp_minus_one, std::expm1, -87, 0), 3e-7);
  EXPECT_LT(worst_error(exp_minus_one, std::expm1, -1e-3, 0), 3e-7);
}

TEST(Vector, TanhIsAccurateEverywhere) {
  EXPECT_LT(worst_error(tanh, std::tanh, -20, 20), 5e-7);
  EXPECT_LT(worst_error(tanh, std::tanh, -1e-3, 1e-3), 5e-7);
}

TEST(Vector, EluIsTheIdentityAboveZeroAndExpMinusOneBelow) {
  const auto elu_exactly = [](double x) { return x > 0 ? x : std::expm1(x); };
  EXPECT_LT(worst_error(elu, elu_exactly, -90, 90), 3e-7);
  EXPECT_EQ(first(elu(broadcast(0))), 0);
}

TEST(Vector, FunctionsSaturateAtInfinity) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(first(tanh(broadcast(infinity))), 1);
  EXPECT_EQ(first(tanh(broadcast(-infinity))), -1);
  EXPECT_EQ(first(elu(broadcast(infinity))), infinity);
  EXPECT_EQ(first(elu(broadcast(-infinity))), -1);
  EXPECT_LT(first(exp(broadcast(-infinity))), 2e-38);
}

TEST(Vector, NotANumberStaysSo) {
  const Vector nan = broadcast(std::numeric_limits<float>::quiet_NaN());
  for (const auto function : {exp, exp_minus_one, elu, tanh})
    EXPECT_TRUE(std::isnan(first(function(nan))));
}

TEST(Vector, SlopesAreTheDerivatives) {
  for (const double x : {-3.0, -0.5, -1e-3, 0.2, 2.0}) {
    const auto f = static_cast<float>(x);
    EXPECT_NEAR(first(tanh_slope(tanh(broadcast(f)))), 1 - std::tanh(x) * std::tanh(x), 1e-6);
    EXPECT_NEAR(first(elu_slope(elu(broadcast(f)))), x > 0 ? 1 : std::exp(x), 1e-6);
  }
}

TEST(Vector, SumAddsEveryLane) {
  float lanes[kLanes];
  for (int i = 0; i < kLanes; ++i) lanes[i] = static_cast<float>(i + 1);
  EXPECT_EQ(sum(load(lanes)), static_cast<float>(kLanes * (kLanes + 1) / 2));
}

}  // namespace
}  // namespace troupe::learners::kernels
