// Adam of learners/adam.hpp as one of torch::optim's kind: every parameter is read once, the
// gradient's clipping folded in. f32 on the CPU.
#pragma once

#include "learners/adam.hpp"
#include "learners/replicas/context.hpp"

namespace troupe::learners {

// `gradient_clip`: largest global norm over the parameters that the optimizer was given; 0: none.
// The factory throws std::invalid_argument for parameters that are not contiguous f32 on the CPU.
OptimizerFactory fused_adam(const AdamOptions& options = {}, double gradient_clip = 0);
// With a learning rate for each parameter in place of that of `options`; clips nothing.
OptimizerFactory fused_adam(const AdamOptions& options, const std::vector<double>& rates);

}  // namespace troupe::learners
