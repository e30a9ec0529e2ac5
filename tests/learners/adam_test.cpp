// Adam against the paper's formulas in double.
#include "learners/adam.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "envs/spec/random.hpp"

namespace troupe::learners {
namespace {

TEST(Adam, FollowsThePapersFormulas) {
  const AdamOptions options{.learning_rate = 0.01};
  constexpr std::size_t kCount = 37;
  Random random(1);
  std::vector<float> p(kCount, 0.5F), g(kCount), m(kCount), v(kCount);
  std::vector<double> ep(kCount, 0.5), em(kCount), ev(kCount);
  for (std::uint64_t step = 1; step <= 50; ++step) {
    for (float& value : g) value = static_cast<float>(random.normal());
    adam_update(options, step, 0.25, p, g, m, v);
    for (std::size_t i = 0; i < kCount; ++i) {
      const double slope = 0.25 * static_cast<double>(g[i]);
      em[i] = 0.9 * em[i] + 0.1 * slope;
      ev[i] = 0.999 * ev[i] + 0.001 * slope * slope;
      const double t = static_cast<double>(step);
      ep[i] -= 0.01 * (em[i] / (1 - std::pow(0.9, t))) /
               (std::sqrt(ev[i] / (1 - std::pow(0.999, t))) + 1e-8);
      ASSERT_NEAR(p[i], ep[i], 1e-5) << step;
    }
  }
}

TEST(SquaredNorm, SumsEveryElementOnce) {
  for (const std::size_t size : {0U, 1U, 15U, 16U, 17U, 100U}) {
    std::vector<float> values(size, 2.0F);
    EXPECT_EQ(squared_norm(values), 4.0 * static_cast<double>(size));
  }
}

TEST(SquaredNorm, IsNotFiniteWhenAnElementIsNot) {
  for (const std::size_t at : {0U, 16U, 36U}) {
    std::vector<float> values(37, 1.0F);
    values[at] = std::numeric_limits<float>::infinity();
    EXPECT_FALSE(std::isfinite(squared_norm(values)));
    values[at] = std::nanf("");
    EXPECT_FALSE(std::isfinite(squared_norm(values)));
  }
}

TEST(ClipFactor, BringsTheNormDownToTheLimitOnly) {
  EXPECT_EQ(clip_factor(80, 40), 0.5);
  EXPECT_EQ(clip_factor(40, 40), 1);
  EXPECT_EQ(clip_factor(1, 40), 1);
  EXPECT_EQ(clip_factor(1e9, 0), 1);
}

}  // namespace
}  // namespace troupe::learners
