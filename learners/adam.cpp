// Implements Adam.
#include "learners/adam.hpp"

#include <array>
#include <cmath>

#include "learners/kernels/denormals.hpp"

namespace troupe::learners {

double squared_norm(std::span<const float> values) {
  // Sixteen running sums, so that the compiler may use vectors without changing the order.
  constexpr std::size_t kLanes = 16;
  std::array<double, kLanes> sums{};
  std::size_t i = 0;
  for (; i + kLanes <= values.size(); i += kLanes)
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const double value = static_cast<double>(values[i + lane]);
      sums[lane] += value * value;
    }
  for (; i < values.size(); ++i) {
    const double value = static_cast<double>(values[i]);
    sums[0] += value * value;
  }
  double total = 0;
  for (const double sum : sums) total += sum;
  return total;
}

double clip_factor(double norm, double limit) {
  return limit > 0 && norm > limit ? limit / norm : 1.0;
}

void adam_update(const AdamOptions& options, std::uint64_t step, double factor,
                 std::span<float> parameters, std::span<const float> gradient,
                 std::span<float> first_moment, std::span<float> second_moment) {
  const kernels::FlushDenormals flush;  // moments of dead gradients fade into them
  const double steps = static_cast<double>(step);
  const auto b1 = static_cast<float>(options.beta1), b2 = static_cast<float>(options.beta2);
  const auto rest1 = static_cast<float>(1 - options.beta1);
  const auto rest2 = static_cast<float>(1 - options.beta2);
  // rate * (m / c1) / (sqrt(v / c2) + epsilon), with the corrections c1, c2 drawn out of the loop.
  const double root = std::sqrt(1 - std::pow(options.beta2, steps));
  const auto rate =
      static_cast<float>(options.learning_rate * root / (1 - std::pow(options.beta1, steps)));
  const auto epsilon = static_cast<float>(options.epsilon * root);
  const auto scale = static_cast<float>(factor);
  float* __restrict p = parameters.data();
  const float* __restrict g = gradient.data();
  float* __restrict m = first_moment.data();
  float* __restrict v = second_moment.data();
  const std::size_t count = parameters.size();
  for (std::size_t i = 0; i < count; ++i) {
    const float slope = g[i] * scale;
    m[i] = b1 * m[i] + rest1 * slope;
    v[i] = b2 * v[i] + rest2 * slope * slope;
    p[i] -= rate * m[i] / (std::sqrt(v[i]) + epsilon);
  }
}

}  // namespace troupe::learners
