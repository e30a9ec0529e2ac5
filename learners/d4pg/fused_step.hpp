// The D4PG gradient step written out by hand: no graph, no allocation after construction, every
// memory pass folded into a product or into one sweep over a panel in the first cache.
//
// Items are independent up to the weight gradients, so each member of the step's team carries its
// own items through every network, forward and backward, and the team meets only twice: after the
// weights are packed, and before each member sums its share of the weight gradients over all items.
// No sum is split between members: results are bitwise the same for every number of threads.
#pragma once

#include <memory>

#include "learners/d4pg/step.hpp"

namespace troupe::learners {

// The model and the buffers outlive the step, which owns context.threads - 1 threads. A layer of
// width w and a batch of B take about 8 * B * w floats.
std::unique_ptr<D4pgStep> make_fused_step(const D4pgModel& model, const D4pgBuffers& buffers,
                                          const StepContext& context);

}  // namespace troupe::learners
