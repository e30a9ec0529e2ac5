// LayerNorm (Ba et al. 2016) followed by tanh over the features of every item, forward and
// backward, one pass over a panel that stays in the first cache. Pure functions over disjoint
// panels; any thread.
#pragma once

#include "learners/kernels/panels.hpp"

namespace troupe::learners::kernels {

struct LayerNormParameters {
  const float* scale = nullptr;  // [features]
  const float* shift = nullptr;  // [features]
  std::int64_t features = 0;
  float epsilon = 1e-5F;
};

// What the backward pass needs beside the output.
struct LayerNormState {
  Panels normalised;                   // (x - mean) / deviation; forward reads x from here
  float* inverse_deviation = nullptr;  // [panels * kPanel], 1 / sqrt(variance + epsilon)
};

// output = tanh(scale * normalised + shift); the variance is that of the features, without Bessel's
// correction. On entry state.normalised holds x.
void layer_norm_tanh_forward(const LayerNormParameters& layer, const LayerNormState& state,
                             const Panels& output, Range panels);

// `gradient` holds d loss / d output and becomes d loss / d (scale * normalised + shift), whose
// sums over the items (sum_items, alone and times `normalised`) are the gradients of shift and
// scale. `input_gradient` becomes d loss / dx.
void layer_norm_tanh_backward(const LayerNormParameters& layer, const LayerNormState& state,
                              const Panels& output, const Panels& gradient,
                              const Panels& input_gradient, Range panels);

}  // namespace troupe::learners::kernels
