// SGD with momentum over flat buffers on the CPU, and layer-wise rates for large batches. Pure
// functions over the caller's memory; torch-free. Written by hand for the same reason as
// learners/adam.hpp: one pass over the arrays.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace troupe::learners {

struct MomentumOptions {
  double momentum = 0.9;
  bool nesterov = true;
  double weight_decay = 1e-4;
  // Of LARS (You et al. 2017, arXiv:1708.03888); 0: plain SGD.
  double trust = 0;
};

// One array of the buffers. Weight decay and LARS leave those alone that do not decay (scales,
// shifts and biases).
struct MomentumSegment {
  std::int64_t offset = 0, elements = 0;
  bool decays = true;
};

// One update, as torch.optim.SGD (dampening 0): g += weight_decay p; v = momentum v + g;
// p -= rate (nesterov ? g + momentum v : v). With `trust`, the rate of a segment that decays is
// multiplied by trust |p| / (|g| + weight_decay |p|), before momentum as in the paper: v = momentum
// v
// + local rate x g, p -= v. Norms are summed in double.
void momentum_update(const MomentumOptions& options, double rate,
                     std::span<const MomentumSegment> segments, std::span<float> parameters,
                     std::span<const float> gradient, std::span<float> velocity);

// average = decay average + (1 - decay) values.
void average_update(double decay, std::span<const float> values, std::span<float> average);

}  // namespace troupe::learners
