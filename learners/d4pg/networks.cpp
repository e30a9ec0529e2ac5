// Implements the networks' storage.
#include "learners/d4pg/networks.hpp"

#include "models/initialise.hpp"
#include "models/torch_precompiled.hpp"

namespace troupe::learners {
namespace {

// Of the policy's last layer, so that first actions lie near the middle of their bounds.
constexpr double kOutputScale = 1e-4;

void fill(const at::Tensor& flat, std::vector<float> values) {
  flat.copy_(at::from_blob(values.data(), {static_cast<std::int64_t>(values.size())}, at::kFloat));
}

NetworkBuffers buffers_of(const models::FlatParameters& online,
                          const models::FlatParameters& target) {
  return {online.values().const_data_ptr<float>(), target.values().const_data_ptr<float>(),
          online.gradient().mutable_data_ptr<float>()};
}

}  // namespace

D4pgNetworks::D4pgNetworks(const D4pgModel& model, at::ScalarType type)
    : policy(model.policy_layout, true, at::kCPU, type),
      critic(model.critic_layout, true, at::kCPU, type),
      target_policy(model.policy_layout, false, at::kCPU, type),
      target_critic(model.critic_layout, false, at::kCPU, type) {}

void D4pgNetworks::initialise(const D4pgModel& model, Random& random) {
  fill(policy.values(), models::initial_values(model.policy, model.policy_layout,
                                               {.output_scale = kOutputScale}, random));
  fill(critic.values(), models::initial_values(model.critic, model.critic_layout, {}, random));
  copy_to_targets();
}

void D4pgNetworks::copy_to_targets() {
  target_policy.values().copy_(policy.values());
  target_critic.values().copy_(critic.values());
}

D4pgBuffers D4pgNetworks::buffers() const {
  return {buffers_of(policy, target_policy), buffers_of(critic, target_critic)};
}

}  // namespace troupe::learners
