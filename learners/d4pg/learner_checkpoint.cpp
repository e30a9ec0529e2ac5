// Moves the learner's state into and out of its checkpoint.
#include "learners/d4pg/checkpoint.hpp"
#include "learners/d4pg/learner.hpp"
#include "models/torch_precompiled.hpp"

namespace troupe::learners {
namespace {

std::vector<float> copy_of(const models::FlatParameters& network) {
  const float* values = network.values().const_data_ptr<float>();
  return {values, values + network.layout().size};
}

std::vector<float> copy_of(const models::AlignedFloats& values) {
  return {values.begin(), values.end()};
}

models::AlignedFloats aligned(const std::vector<float>& values) {
  return {values.begin(), values.end()};
}

void restore(const std::vector<float>& values, const models::FlatParameters& network) {
  std::copy(values.begin(), values.end(), network.values().mutable_data_ptr<float>());
}

}  // namespace

Result<std::vector<FileContent>> D4pgLearner::snapshot() const {
  D4pgReplica& replica = *replicas_.front();
  const D4pgNetworks& networks = replica.networks();
  D4pgCheckpoint checkpoint{.updates = replica.updates(),
                            .random = random_.state(),
                            .policy = copy_of(networks.policy),
                            .critic = copy_of(networks.critic),
                            .target_policy = copy_of(networks.target_policy),
                            .target_critic = copy_of(networks.target_critic),
                            .policy_first = copy_of(replica.policy_moments().first),
                            .policy_second = copy_of(replica.policy_moments().second),
                            .critic_first = copy_of(replica.critic_moments().first),
                            .critic_second = copy_of(replica.critic_moments().second),
                            .statistics = std::nullopt};
  if (scale_) checkpoint.statistics = statistics_;
  return encode_checkpoint(model_, checkpoint);
}

Result<void> D4pgLearner::load(const std::filesystem::path& directory) {
  Result<D4pgCheckpoint> loaded = load_checkpoint(directory, model_);
  if (!loaded) return tl::unexpected(loaded.error());
  // Nothing below can fail.
  for (const std::unique_ptr<D4pgReplica>& replica : replicas_) {
    const D4pgNetworks& networks = replica->networks();
    restore(loaded->policy, networks.policy);
    restore(loaded->critic, networks.critic);
    restore(loaded->target_policy, networks.target_policy);
    restore(loaded->target_critic, networks.target_critic);
    replica->policy_moments() = {aligned(loaded->policy_first), aligned(loaded->policy_second)};
    replica->critic_moments() = {aligned(loaded->critic_first), aligned(loaded->critic_second)};
    replica->set_updates(loaded->updates);
  }
  random_.set_state(loaded->random);
  if (loaded->statistics) {
    statistics_ = *std::move(loaded->statistics);
    rescale();
  }
  return {};
}

}  // namespace troupe::learners
