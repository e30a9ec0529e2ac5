// Chooses who computes a replica's gradients.
#pragma once

#include <memory>

#include "learners/d4pg/networks.hpp"
#include "learners/d4pg/step.hpp"

namespace troupe::learners {

// As model.options.step says; "auto" takes the fused kernels on the CPU.
std::unique_ptr<D4pgStep> make_step(const D4pgModel& model, D4pgNetworks& networks,
                                    const StepContext& context);

}  // namespace troupe::learners
