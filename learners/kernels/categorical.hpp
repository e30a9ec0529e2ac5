// The categorical critic's arithmetic (Bellemare et al. 2017, arXiv:1707.06887) over panels of
// items: softmax, projection of the shifted target onto the support, cross-entropy, and the mean's
// gradient. Costs O(atoms) an item, the projection included. Pure functions over disjoint panels;
// any thread.
#pragma once

#include <cstdint>
#include <vector>

#include "learners/kernels/panels.hpp"

namespace troupe::learners::kernels {

// Equally spaced values from low to high, both included.
class Support {
 public:
  // atoms >= 2, low < high.
  Support(double low, double high, std::int64_t atoms);

  float low() const { return low_; }
  float high() const { return high_; }
  float inverse_step() const { return inverse_step_; }
  std::int64_t atoms() const { return static_cast<std::int64_t>(values_.size()); }
  const std::vector<float>& values() const { return values_; }

 private:
  float low_, high_, inverse_step_;
  std::vector<float> values_;
};

// Logits become probabilities in place, as many rows as `logits` has. `log_normaliser`
// [panels * kPanel], if any, gets log(sum(exp(logit))).
void softmax(const Panels& logits, float* log_normaliser, Range panels);

// target = projection of {reward + discount * value_j : probability_j} onto the support. What falls
// outside goes to the nearest end. A reward or discount that is not a number makes its item's
// target not a number. `outside`, if any, gets each item's mass that fell outside. All arrays
// [panels * kPanel].
void project(const Support& support, const Panels& probabilities, const float* reward,
             const float* discount, const Panels& target, float* outside, Range panels);

// loss[item] = -sum(target * log softmax(logits)); `gradient` becomes
// item_scale[item] * (softmax(logits) * sum(target) - target), the loss's gradient by the logits
// times item_scale. `mean`, if any, gets sum(value * softmax(logits)).
void cross_entropy(const Support& support, const Panels& target, const float* item_scale,
                   const Panels& logits, const Panels& gradient, float* loss, float* mean,
                   Range panels);

// mean[item] = sum(value * softmax(logits)); `gradient` becomes item_scale[item] * d mean / d
// logits.
void mean_gradient(const Support& support, const float* item_scale, const Panels& logits,
                   const Panels& gradient, float* mean, Range panels);

// mean[item] = sum(value * probability).
void mean_value(const Support& support, const Panels& probabilities, float* mean, Range panels);

}  // namespace troupe::learners::kernels
