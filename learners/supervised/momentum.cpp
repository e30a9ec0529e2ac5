#include "learners/supervised/momentum.hpp"

#include <cmath>

#include "learners/adam.hpp"

namespace troupe::learners {
namespace {

// LARS's factor for the learning rate; 1 where a norm is zero, as in its reference.
double local_rate(const MomentumOptions& options, std::span<const float> parameters,
                  std::span<const float> gradient) {
  const double weight = std::sqrt(squared_norm(parameters));
  const double slope = std::sqrt(squared_norm(gradient));
  if (weight == 0 || slope == 0) return 1;
  return options.trust * weight / (slope + options.weight_decay * weight);
}

}  // namespace

void momentum_update(const MomentumOptions& options, double rate,
                     std::span<const MomentumSegment> segments, std::span<float> parameters,
                     std::span<const float> gradient, std::span<float> velocity) {
  const auto momentum = static_cast<float>(options.momentum);
  for (const MomentumSegment& segment : segments) {
    const auto part = [&](auto span) {
      return span.subspan(static_cast<std::size_t>(segment.offset),
                          static_cast<std::size_t>(segment.elements));
    };
    const std::span<float> p = part(parameters), v = part(velocity);
    const std::span<const float> g = part(gradient);
    const auto decay = static_cast<float>(segment.decays ? options.weight_decay : 0);
    const bool layer_wise = options.trust > 0;
    // With LARS the rate is inside of the velocity, so that it may change between updates.
    const auto inside = static_cast<float>(
        layer_wise ? rate * (segment.decays ? local_rate(options, p, g) : 1) : 1);
    const auto outside = static_cast<float>(layer_wise ? 1 : rate);
    const bool nesterov = options.nesterov;
    for (std::size_t i = 0; i < p.size(); ++i) {
      const float slope = inside * (g[i] + decay * p[i]);
      v[i] = momentum * v[i] + slope;
      p[i] -= outside * (nesterov ? slope + momentum * v[i] : v[i]);
    }
  }
}

void average_update(double decay, std::span<const float> values, std::span<float> average) {
  const auto old = static_cast<float>(decay), fresh = static_cast<float>(1 - decay);
  for (std::size_t i = 0; i < values.size(); ++i) average[i] = old * average[i] + fresh * values[i];
}

}  // namespace troupe::learners
