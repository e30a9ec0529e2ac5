// The Control Suite's reward shaping: how near a number is to an interval, from 0 to 1. Source:
// dm_control/utils/rewards.py; the order of operations is kept so that doubles agree. Pure
// functions.
#pragma once

#include <cmath>
#include <limits>

namespace troupe::envs::dmc {

constexpr double kUnbounded = std::numeric_limits<double>::infinity();

// How the value falls from 1 at the interval to `value_at_margin` at distance `margin`.
enum class Sigmoid { kGaussian, kLinear, kQuadratic };

// Value at distance x (in margins); `at_one` = value at x = 1, in [0, 1), above 0 for the Gaussian.
inline double sigmoid(double x, double at_one, Sigmoid kind) {
  if (kind == Sigmoid::kGaussian) {
    const double scaled = x * std::sqrt(-2 * std::log(at_one));
    return std::exp(-0.5 * (scaled * scaled));
  }
  if (kind == Sigmoid::kLinear) {
    const double scaled = x * (1 - at_one);
    return std::abs(scaled) < 1 ? 1 - scaled : 0;
  }
  const double scaled = x * std::sqrt(1 - at_one);
  return std::abs(scaled) < 1 ? 1 - scaled * scaled : 0;
}

struct Tolerance {
  double low = 0, high = 0;  // the interval in which the value is 1
  double margin = 0;         // 0: the value is 0 outside
  Sigmoid kind = Sigmoid::kGaussian;
  double value_at_margin = 0.1;
};

inline double tolerance(double x, const Tolerance& t) {
  if (t.low <= x && x <= t.high) return 1;
  if (t.margin == 0) return 0;
  const double distance = (x < t.low ? t.low - x : x - t.high) / t.margin;
  return sigmoid(distance, t.value_at_margin, t.kind);
}

}  // namespace troupe::envs::dmc
