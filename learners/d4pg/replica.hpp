// One D4PG replica: networks, optimizer state and the update that all replicas make together.
// Belongs to its thread; the learner touches it only between rounds of work.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "learners/d4pg/networks.hpp"
#include "learners/d4pg/step.hpp"
#include "learners/replicas/context.hpp"
#include "models/aligned_floats.hpp"

namespace troupe::learners {

struct AdamMoments {
  models::AlignedFloats first, second;  // in the layout of the network
};

// Sums over all replicas and the norms after their reduction: equal on every replica.
struct UpdateTotals {
  StepOutputs sums;
  double critic_norm = 0, policy_norm = 0;  // before clipping
};

class D4pgReplica {
 public:
  // Initialises from `seed`, alike on every replica.
  D4pgReplica(const D4pgModel& model, const StepContext& step, std::uint64_t seed);

  // Gradients over `rows`, reduced over all replicas that `context` is in sync with. An error
  // kNotFinite comes on every replica. What it is followed by applies them:
  Result<UpdateTotals> compute(ReplicaContext& context, const BatchRows& rows,
                               std::span<float> item_loss, bool want_metrics);
  // here, clipped by their norms; targets are copied every target_period updates;
  void apply(const UpdateTotals& totals);
  // or elsewhere: clips them in place,
  void clip(const UpdateTotals& totals);
  // and what came of them, now the parameters, are those of `version`. Targets are copied when it
  // is in another period than the last one.
  void take_version(std::uint64_t version);

  // Parameters, targets and moments in one order, as they lie in memory.
  std::vector<at::Tensor> state();

  // Of parameters, targets, moments and counter: equal bits, equal hash.
  std::uint64_t state_hash() const;
  const char* step_name() const { return step_->name(); }

  D4pgNetworks& networks() { return networks_; }
  const D4pgNetworks& networks() const { return networks_; }
  AdamMoments& policy_moments() { return policy_moments_; }
  AdamMoments& critic_moments() { return critic_moments_; }
  std::uint64_t updates() const { return updates_; }
  void set_updates(std::uint64_t updates) { updates_ = updates; }

 private:
  Result<void> reduce(ReplicaContext& context, UpdateTotals& totals);
  Result<void> check_finite(const UpdateTotals& totals) const;
  void apply_adam(const models::FlatParameters& network, AdamMoments& moments, double rate,
                  double norm);

  const D4pgModel& model_;
  D4pgNetworks networks_;
  AdamMoments policy_moments_, critic_moments_;
  std::unique_ptr<D4pgStep> step_;
  at::Tensor sums_;  // f64 scratch of reduce
  std::uint64_t updates_ = 0;
};

}  // namespace troupe::learners
