// Implements the replica's update.
#include "learners/d4pg/replica.hpp"

#include <array>
#include <cmath>

#include "learners/adam.hpp"
#include "learners/d4pg/make_step.hpp"
#include "learners/d4pg/slices.hpp"
#include "learners/state_hash.hpp"
#include "models/torch_precompiled.hpp"

namespace troupe::learners {
namespace {

std::span<float> floats(const at::Tensor& flat) {
  return {flat.mutable_data_ptr<float>(), static_cast<std::size_t>(flat.numel())};
}

AdamMoments zero_moments(const models::FlatLayout& layout) {
  const auto size = static_cast<std::size_t>(layout.size);
  return {models::AlignedFloats(size), models::AlignedFloats(size)};
}

}  // namespace

D4pgReplica::D4pgReplica(const D4pgModel& model, const StepContext& step, std::uint64_t seed)
    : model_(model),
      networks_(model),
      policy_moments_(zero_moments(model.policy_layout)),
      critic_moments_(zero_moments(model.critic_layout)),
      sums_(at::zeros({6}, at::kDouble)) {
  Random random(stream_seed(seed, "initialise"));
  networks_.initialise(model, random);
  step_ = make_step(model, networks_, step);
}

Result<UpdateTotals> D4pgReplica::compute(ReplicaContext& context, const BatchRows& rows,
                                          std::span<float> item_loss, bool want_metrics) {
  UpdateTotals totals;
  totals.sums.want_metrics = want_metrics;
  totals.sums.item_loss = item_loss;
  if (Result<void> computed = step_->compute(rows, totals.sums); !computed)
    return tl::unexpected(computed.error());
  if (Result<void> reduced = reduce(context, totals); !reduced)
    return tl::unexpected(reduced.error());

  totals.critic_norm = std::sqrt(squared_norm(floats(networks_.critic.gradient())));
  totals.policy_norm = std::sqrt(squared_norm(floats(networks_.policy.gradient())));
  if (Result<void> finite = check_finite(totals); !finite) return tl::unexpected(finite.error());
  return totals;
}

void D4pgReplica::apply(const UpdateTotals& totals) {
  ++updates_;
  const D4pgOptions& options = model_.options;
  apply_adam(networks_.critic, critic_moments_, learning_rate_of(options, false),
             totals.critic_norm);
  apply_adam(networks_.policy, policy_moments_, learning_rate_of(options, true),
             totals.policy_norm);
  if (updates_ % static_cast<std::uint64_t>(options.target_period) == 0)
    networks_.copy_to_targets();
}

void D4pgReplica::clip(const UpdateTotals& totals) {
  const auto scale = [&](const models::FlatParameters& network, double norm) {
    const double factor = clip_factor(norm, model_.options.gradient_clip);
    if (factor == 1) return;
    for (float& value : floats(network.gradient())) value *= static_cast<float>(factor);
  };
  scale(networks_.critic, totals.critic_norm);
  scale(networks_.policy, totals.policy_norm);
}

void D4pgReplica::take_version(std::uint64_t version) {
  const auto period = static_cast<std::uint64_t>(model_.options.target_period);
  if (version / period != updates_ / period) networks_.copy_to_targets();
  updates_ = version;
}

std::vector<at::Tensor> D4pgReplica::state() {
  std::vector<at::Tensor> state = {networks_.policy.values(), networks_.critic.values(),
                                   networks_.target_policy.values(),
                                   networks_.target_critic.values()};
  for (AdamMoments* moments : {&policy_moments_, &critic_moments_})
    for (models::AlignedFloats* values : {&moments->first, &moments->second})
      state.push_back(
          at::from_blob(values->data(), {static_cast<std::int64_t>(values->size())}, at::kFloat));
  return state;
}

Result<void> D4pgReplica::reduce(ReplicaContext& context, UpdateTotals& totals) {
  if (context.replicas_in_sync() == 1) return {};
  StepOutputs& sums = totals.sums;
  const std::array<double*, 6> fields = {
      &sums.critic_loss, &sums.policy_loss,  &sums.q,
      &sums.target_q,    &sums.clipped_mass, &sums.action_gradient_clipped};
  double* scratch = sums_.mutable_data_ptr<double>();
  for (std::size_t i = 0; i < fields.size(); ++i) scratch[i] = *fields[i];
  const std::array<at::Tensor, 3> tensors = {networks_.critic.gradient(),
                                             networks_.policy.gradient(), sums_};
  Result<void> reduced = context.collective().all_reduce(
      tensors, ReduceOp::kSum, "gradients of D4PG's update " + std::to_string(updates_ + 1));
  for (std::size_t i = 0; i < fields.size(); ++i) *fields[i] = scratch[i];
  return reduced;
}

Result<void> D4pgReplica::check_finite(const UpdateTotals& totals) const {
  const auto bad = [&](double value, const char* what) {
    return fail(ErrorCode::kNotFinite, std::string(what) + " of update " +
                                           std::to_string(updates_ + 1) + " is " +
                                           std::to_string(value) + "; nothing was changed.");
  };
  if (!std::isfinite(totals.sums.critic_loss))
    return bad(totals.sums.critic_loss, "The critic's loss");
  if (!std::isfinite(totals.sums.policy_loss))
    return bad(totals.sums.policy_loss, "The policy's loss");
  if (!std::isfinite(totals.critic_norm))
    return bad(totals.critic_norm, "The norm of the critic's gradient");
  if (!std::isfinite(totals.policy_norm))
    return bad(totals.policy_norm, "The norm of the policy's gradient");
  return {};
}

void D4pgReplica::apply_adam(const models::FlatParameters& network, AdamMoments& moments,
                             double rate, double norm) {
  const double factor = clip_factor(norm, model_.options.gradient_clip);
  adam_update({.learning_rate = rate}, updates_, factor, floats(network.values()),
              floats(network.gradient()), moments.first, moments.second);
}

std::uint64_t D4pgReplica::state_hash() const {
  StateHash hash;
  hash.add(updates_);
  for (const models::FlatParameters* network :
       {&networks_.policy, &networks_.critic, &networks_.target_policy, &networks_.target_critic})
    hash.add(floats(network->values()));
  for (const AdamMoments* moments : {&policy_moments_, &critic_moments_}) {
    hash.add(moments->first);
    hash.add(moments->second);
  }
  return hash.value();
}

}  // namespace troupe::learners
