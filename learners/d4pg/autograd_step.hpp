// D4PG's gradients by LibTorch's autograd: the plain statement of the mathematics, on any device
// and in any floating type, that faster steps are compared with. Used by one replica's thread.
#pragma once

#include "learners/d4pg/networks.hpp"
#include "learners/d4pg/step.hpp"

namespace troupe::learners {

// A replica's rows as tensors of the networks' type and device; shapes as in BatchRows.
struct D4pgTensors {
  at::Tensor observation, action, reward, discount, next_observation, weight;
  double global_count = 0;
};

// What the rows' losses were, for tests and reports: [B] each.
struct D4pgLosses {
  at::Tensor cross_entropy, value;  // unweighted; value = Q(s, policy(s))
  at::Tensor target;                // [B, atoms]
  at::Tensor prediction;            // [B, atoms] log-probabilities at (s, a)
  at::Tensor action_gradient;       // [B, action] dQ/da before clipping
  at::Tensor next_probabilities;    // [B, atoms] of the target critic
};

// Overwrites the gradients of policy and critic; see step.hpp for what they are.
D4pgLosses compute_gradients(const D4pgModel& model, D4pgNetworks& networks,
                             const D4pgTensors& rows);

// `networks` outlive the step.
std::unique_ptr<D4pgStep> make_autograd_step(const D4pgModel& model, D4pgNetworks& networks,
                                             const StepContext& context);

}  // namespace troupe::learners
