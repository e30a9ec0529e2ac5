// The gradient computation of one D4PG replica (Barth-Maron et al. 2018, arXiv:1804.08617): the
// seam between the learner, which owns parameters, reduces gradients and applies them, and whoever
// computes gradients fast. One D4pgStep belongs to its replica's thread. Torch-free.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "envs/spec/result.hpp"
#include "learners/options.hpp"
#include "models/inference/dense_layers.hpp"

namespace troupe::learners {

// Both networks, fixed for the life of a learner. The critic's input is [observation, action] in
// that order; its outputs are logits over `options.atoms` equally spaced values from v_min to
// v_max, both included. The policy's outputs lie in [-1, 1].
struct D4pgModel {
  D4pgOptions options;
  std::int64_t observation = 0, action = 0;  // elements
  std::vector<models::DenseLayer> policy, critic;
  models::FlatLayout policy_layout, critic_layout;
};

D4pgModel make_d4pg_model(std::int64_t observation, std::int64_t action,
                          const D4pgOptions& options);

// Flat buffers of one network in its layout, 64-byte aligned; addresses never change.
struct NetworkBuffers {
  const float* parameters = nullptr;
  const float* target = nullptr;  // parameters of the target network, same layout
  float* gradient = nullptr;      // written by compute; padding stays zero
};

struct D4pgBuffers {
  NetworkBuffers policy, critic;
};

// A replica's rows of the global batch, row-major; observations are already normalised where that
// is on.
struct BatchRows {
  std::int64_t count = 0;                   // rows here
  std::int64_t global_count = 0;            // rows over all replicas: what losses are averaged over
  const float* observation = nullptr;       // [count, observation]
  const float* action = nullptr;            // [count, action] in [-1, 1]
  const float* reward = nullptr;            // [count] n-step sum
  const float* discount = nullptr;          // [count] gamma^k, 0 after a termination
  const float* next_observation = nullptr;  // [count, observation]
  const float* weight = nullptr;            // [count] importance weight
};

// Sums over the replica's rows, in double; the learner adds them over replicas.
struct StepOutputs {
  bool want_metrics = false;   // in: whether the sums below that say so are to be filled
  std::span<float> item_loss;  // out [count]: cross-entropy of each row, unweighted
  double critic_loss = 0;      // sum of weight * cross-entropy; always filled
  double policy_loss = 0;      // sum of -Q(s, policy(s)); always filled
  double q = 0;                // metrics: sum of the critic's mean at (s, a) of the batch
  double target_q = 0;         // metrics: sum of the mean of the projected target
  double clipped_mass = 0;     // metrics: sum of target mass that fell outside [v_min, v_max]
  double action_gradient_clipped = 0;  // metrics: number of elements of dQ/da that were clipped
};

// Exactly what compute() has to produce, with p the critic's distribution softmax(logits), z the
// support:
//   target     projection of {reward + discount * z_j : p'_j} onto z, p' from the target critic at
//              (next_observation, target policy(next_observation))           (categorical
//              projection)
//   critic     gradient of 1/global_count * sum_i weight_i * cross_entropy(target_i, p(s_i, a_i))
//   policy     1/global_count * sum_i -(d policy(s_i)/d theta)^T clip(dQ_i/da,
//   +-action_gradient_clip)
//              with Q_i = sum_j z_j p_j(s_i, policy(s_i)) and the critic as it is before this
//              update; clip is per element, 0 means none. No gradient reaches the critic from the
//              policy's loss.
// Gradients are overwritten, not accumulated, and summed over replicas by the learner.
class D4pgStep {
 public:
  virtual ~D4pgStep() = default;
  // Reads the parameters, writes the gradient buffers. Does not judge whether numbers are finite:
  // the learner does. Error: a row count larger than it was made for.
  virtual Result<void> compute(const BatchRows& rows, StepOutputs& outputs) = 0;
  virtual const char* name() const = 0;  // "autograd", "fused"
};

struct StepContext {
  std::int64_t max_rows = 0;  // of one replica
  std::int64_t threads = 1;   // intra-op threads
  bool deterministic = false;
};

// The fused CPU step, learners/d4pg/fused_step.hpp, is made by
//   std::unique_ptr<D4pgStep> make_fused_step(const D4pgModel&, const D4pgBuffers&, const
//   StepContext&);
// The model outlives the step.

}  // namespace troupe::learners
