// Exploration noise: its moments, its bounds, and that its state is its generator.
#include "models/inference/exploration.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace troupe::models {
namespace {

TEST(GaussianNoise, HasTheAskedStandardDeviationInsideTheBounds) {
  GaussianNoise noise(0.1, Random(1));
  double sum = 0, squares = 0;
  constexpr int kDraws = 20000;
  for (int i = 0; i < kDraws; ++i) {
    float action = 0.25F;
    noise.apply({&action, 1});
    sum += static_cast<double>(action) - 0.25;
    squares += std::pow(static_cast<double>(action) - 0.25, 2);
  }
  EXPECT_NEAR(sum / kDraws, 0, 0.003);
  EXPECT_NEAR(std::sqrt(squares / kDraws), 0.1, 0.003);
}

TEST(GaussianNoise, NeverLeavesTheBounds) {
  GaussianNoise noise(3.0, Random(2));
  std::vector<float> actions(1000, 0.9F);
  noise.apply(actions);
  for (const float action : actions) EXPECT_LE(std::abs(action), 1.0F);
}

TEST(GaussianNoise, GoesOnFromItsSavedState) {
  GaussianNoise noise(0.3, Random(3));
  std::vector<float> actions(7), expected(7), resumed(7);
  noise.apply(actions);
  const Random::State saved = noise.state();
  noise.apply(expected);
  GaussianNoise other(0.3, Random(99));
  other.set_state(saved);
  other.apply(resumed);
  EXPECT_EQ(resumed, expected);
}

}  // namespace
}  // namespace troupe::models
