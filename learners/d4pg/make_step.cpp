// Implements the choice.
#include "learners/d4pg/make_step.hpp"

#include "learners/d4pg/autograd_step.hpp"
#include "learners/d4pg/fused_step.hpp"

namespace troupe::learners {

std::unique_ptr<D4pgStep> make_step(const D4pgModel& model, D4pgNetworks& networks,
                                    const StepContext& context) {
  if (model.options.step != "autograd") return make_fused_step(model, networks.buffers(), context);
  return make_autograd_step(model, networks, context);
}

}  // namespace troupe::learners
