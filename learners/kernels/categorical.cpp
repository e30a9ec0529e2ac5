#include "learners/kernels/categorical.hpp"

#include <algorithm>
#include <cmath>

namespace troupe::learners::kernels {
namespace {

// Calls body(panel, lane, item) for every vector of items; item = index of its first item.
template <class Body>
void for_each_vector(Range panels, Body body) {
  for (std::int64_t panel = panels.begin; panel < panels.end; ++panel)
    for (std::int64_t lane = 0; lane < kPanel; lane += kLanes)
      body(panel, lane, panel * kPanel + lane);
}

Vector log_lanes(Vector value) {
  float lanes[kLanes];
  store(lanes, value);
  for (float& lane : lanes) lane = std::log(lane);
  return load(lanes);
}

Vector weighted_sum(const float* column, const std::vector<float>& values) {
  Vector total{};
  for (std::size_t atom = 0; atom < values.size(); ++atom)
    total = multiply_add(load(column + static_cast<std::int64_t>(atom) * kPanel),
                         broadcast(values[atom]), total);
  return total;
}

// Reads logits, writes probabilities (the two may be one array); returns log(sum(exp(logit))).
Vector softmax_column(const float* logits, float* probabilities, std::int64_t atoms) {
  Vector highest = load(logits);
  for (std::int64_t atom = 1; atom < atoms; ++atom)
    highest = larger(load(logits + atom * kPanel), highest);
  Vector total{};
  for (std::int64_t atom = 0; atom < atoms; ++atom) {
    const Vector mass = exp(load(logits + atom * kPanel) - highest);
    total += mass;
    store(probabilities + atom * kPanel, mass);
  }
  const Vector inverse = 1.0F / total;
  for (std::int64_t atom = 0; atom < atoms; ++atom)
    store(probabilities + atom * kPanel, load(probabilities + atom * kPanel) * inverse);
  return highest + log_lanes(total);
}

}  // namespace

Support::Support(double low, double high, std::int64_t atoms)
    : low_(static_cast<float>(low)),
      high_(static_cast<float>(high)),
      inverse_step_(static_cast<float>(static_cast<double>(atoms - 1) / (high - low))),
      values_(static_cast<std::size_t>(atoms)) {
  for (std::int64_t atom = 0; atom < atoms; ++atom)
    values_[static_cast<std::size_t>(atom)] = static_cast<float>(
        low + (high - low) * static_cast<double>(atom) / static_cast<double>(atoms - 1));
}

void softmax(const Panels& logits, float* log_normaliser, Range panels) {
  for_each_vector(panels, [&](std::int64_t panel, std::int64_t lane, std::int64_t item) {
    float* column = logits.panel(panel) + lane;
    const Vector normaliser = softmax_column(column, column, logits.rows);
    if (log_normaliser != nullptr) store(log_normaliser + item, normaliser);
  });
}

void project(const Support& support, const Panels& probabilities, const float* reward,
             const float* discount, const Panels& target, float* outside, Range panels) {
  const std::int64_t atoms = support.atoms();
  const Vector low = broadcast(support.low()), high = broadcast(support.high());
  for_each_vector(panels, [&](std::int64_t panel, std::int64_t lane, std::int64_t item) {
    const float* from = probabilities.panel(panel) + lane;
    float* to = target.panel(panel) + lane;
    for (std::int64_t atom = 0; atom < atoms; ++atom) store(to + atom * kPanel, Vector{});
    const Vector shift = load(reward + item), factor = load(discount + item);
    Vector lost{};
    for (std::int64_t atom = 0; atom < atoms; ++atom) {
      const Vector value =
          multiply_add(factor, broadcast(support.values()[static_cast<std::size_t>(atom)]), shift);
      Vector mass = load(from + atom * kPanel);
      lost += (value < low) | (value > high) ? mass : Vector{};
      mass = value != value ? value : mass;
      const Vector position =
          (smaller(larger(value, low), high) - low) * broadcast(support.inverse_step());
      float positions[kLanes], masses[kLanes];
      store(positions, position);
      store(masses, mass);
      for (int i = 0; i < kLanes; ++i) {
        const auto below = std::min(static_cast<std::int64_t>(positions[i]), atoms - 2);
        const float upper = masses[i] * (positions[i] - static_cast<float>(below));
        to[below * kPanel + i] += masses[i] - upper;
        to[(below + 1) * kPanel + i] += upper;
      }
    }
    if (outside != nullptr) store(outside + item, lost);
  });
}

void cross_entropy(const Support& support, const Panels& target, const float* item_scale,
                   const Panels& logits, const Panels& gradient, float* loss, float* mean,
                   Range panels) {
  const std::int64_t atoms = support.atoms();
  for_each_vector(panels, [&](std::int64_t panel, std::int64_t lane, std::int64_t item) {
    const float* logit = logits.panel(panel) + lane;
    float* slope = gradient.panel(panel) + lane;  // holds the probabilities first
    const float* wanted = target.panel(panel) + lane;
    const Vector normaliser = softmax_column(logit, slope, atoms);
    Vector cross{}, mass{};
    for (std::int64_t atom = 0; atom < atoms; ++atom) {
      const Vector share = load(wanted + atom * kPanel);
      cross = multiply_add(share, normaliser - load(logit + atom * kPanel), cross);
      mass += share;
    }
    store(loss + item, cross);
    if (mean != nullptr) store(mean + item, weighted_sum(slope, support.values()));
    const Vector scale = load(item_scale + item);
    for (std::int64_t atom = 0; atom < atoms; ++atom)
      store(slope + atom * kPanel,
            scale * (load(slope + atom * kPanel) * mass - load(wanted + atom * kPanel)));
  });
}

void mean_gradient(const Support& support, const float* item_scale, const Panels& logits,
                   const Panels& gradient, float* mean, Range panels) {
  const std::int64_t atoms = support.atoms();
  for_each_vector(panels, [&](std::int64_t panel, std::int64_t lane, std::int64_t item) {
    float* slope = gradient.panel(panel) + lane;  // holds the probabilities first
    softmax_column(logits.panel(panel) + lane, slope, atoms);
    const Vector average = weighted_sum(slope, support.values());
    store(mean + item, average);
    const Vector scale = load(item_scale + item);
    for (std::int64_t atom = 0; atom < atoms; ++atom) {
      const Vector distance = broadcast(support.values()[static_cast<std::size_t>(atom)]) - average;
      store(slope + atom * kPanel, scale * load(slope + atom * kPanel) * distance);
    }
  });
}

void mean_value(const Support& support, const Panels& probabilities, float* mean, Range panels) {
  for_each_vector(panels, [&](std::int64_t panel, std::int64_t lane, std::int64_t item) {
    store(mean + item, weighted_sum(probabilities.panel(panel) + lane, support.values()));
  });
}

}  // namespace troupe::learners::kernels
