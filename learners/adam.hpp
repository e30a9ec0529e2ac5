// Adam (Kingma and Ba 2015, arXiv:1412.6980) over flat buffers on the CPU, with the gradient's
// clipping folded in. Pure functions over the caller's memory; torch-free. Written by hand because
// this way every parameter is read once, where LibTorch's clipping and optimizer make several
// passes over each array.
#pragma once

#include <cstdint>
#include <span>

namespace troupe::learners {

struct AdamOptions {
  double learning_rate = 1e-4, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
};

// Sum of squares, added in double in an order that depends on the size alone; not finite when an
// element is not.
double squared_norm(std::span<const float> values);

// Factor that brings a gradient of this norm down to `limit`; 1 when it is below, or limit is 0
// (none).
double clip_factor(double norm, double limit);

// One update with `factor` times the gradient. `step` counts from 1. All spans have one size.
void adam_update(const AdamOptions& options, std::uint64_t step, double factor,
                 std::span<float> parameters, std::span<const float> gradient,
                 std::span<float> first_moment, std::span<float> second_moment);

}  // namespace troupe::learners
