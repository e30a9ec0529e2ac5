// Implements the learner's part in an asynchronous group: its rank 0 sends the group's updates to
// the parameter servers and passes their values on.
#include <array>

#include "learners/d4pg/learner.hpp"
#include "models/torch_precompiled.hpp"

namespace troupe::learners {
namespace {

// Updates of a worker between two looks at the observation statistics that all share.
constexpr std::uint64_t kExchangeEvery = 50;

bool may_come_back(const Error& error) {
  return error.code == ErrorCode::kUnavailable || error.code == ErrorCode::kTimeout;
}

}  // namespace

Result<void> D4pgLearner::ask_servers() {
  D4pgNetworks& networks = replicas_.front()->networks();
  return unsettled_ == Unsettled::kValues ? servers_->begin(networks) : servers_->update(networks);
}

Result<bool> D4pgLearner::settle() {
  if (!replicator_) return fail(ErrorCode::kUnavailable, "The learner is between two groups.");
  if (unsettled_ == Unsettled::kNothing) return true;
  bool settled = false;
  std::uint64_t version = 0;
  if (servers_) {
    const Result<void> asked = ask_servers();
    if (!asked && !may_come_back(asked.error())) {
      replicator_.reset();  // so that none of the group waits for this one
      return tl::unexpected(asked.error());
    }
    settled = asked.has_value();
    version = servers_->version();
  }
  const Result<bool> shared = share_values(settled, version);
  if (!shared || !*shared) return shared;
  const bool begins = unsettled_ == Unsettled::kValues;
  unsettled_ = Unsettled::kNothing;
  if (servers_ && scale_ && (begins || made_ % kExchangeEvery == 0)) exchange_statistics();
  return true;
}

// True on every learner of the group once its rank 0 has settled. A learner of one replica has
// nobody to share with.
Result<bool> D4pgLearner::share_values(bool settled, std::uint64_t version) {
  if (group_.size * replicas() == 1) {
    if (settled) replicas_.front()->take_version(version);
    return settled;
  }
  std::vector<int> known(replicas_.size());
  const Result<void> shared = replicator_->step([&](int i,
                                                    ReplicaContext& context) -> Result<void> {
    const auto index = static_cast<std::size_t>(i);
    D4pgReplica& replica = *replicas_[index];
    const at::Tensor head = at::empty({2}, at::kLong);
    auto* words = head.mutable_data_ptr<std::int64_t>();
    words[0] = settled ? 1 : 0;
    words[1] = static_cast<std::int64_t>(version);
    const std::array<at::Tensor, 3> tensors = {head, replica.networks().critic.values(),
                                               replica.networks().policy.values()};
    return context.collective().broadcast(tensors, 0, "values of the parameter servers").map([&] {
      known[index] = words[0] == 1;
      if (words[0] == 1) replica.take_version(static_cast<std::uint64_t>(words[1]));
    });
  });
  if (!shared) return tl::unexpected(shared.error());
  return known.front() == 1;
}

void D4pgLearner::refresh() {
  if (!servers_ || !replicator_ || group_.size > 1 || unsettled_ != Unsettled::kNothing) return;
  // Without an answer, and to others of this process, the values stay or are those that came.
  const bool fresh = servers_->refresh(replicas_.front()->networks()).has_value();
  static_cast<void>(share_values(fresh, servers_->version()));
}

UpdatesSent D4pgLearner::updates_sent() const {
  if (!servers_) return {};
  const UpdateLedger ledger = servers_->ledger();
  return {ledger.sent, ledger.rolled_back, ledger.refused};
}

// Who has heard of new observations leaves what it knows for the others. What a server that is not
// there misses is left the next time.
void D4pgLearner::exchange_statistics() {
  if (merged_) {
    merged_ = !servers_->keep(statistics_.encode()).has_value();
    return;
  }
  const Result<std::vector<std::uint8_t>> kept = servers_->kept();
  if (!kept || kept->empty()) return;
  Result<models::RunningStatistics> decoded = models::RunningStatistics::decode(*kept);
  if (!decoded || decoded->size() != model_.observation) return;
  statistics_ = *std::move(decoded);
  rescale();
}

}  // namespace troupe::learners
