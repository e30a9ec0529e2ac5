// The coordinator's checkpoints: begun with all who serve, committed once every part stands.
#include <utility>

#include "actors/roles/run_state.hpp"

#include "actors/config/checks.hpp"

namespace troupe::actors {
namespace {

constexpr std::chrono::milliseconds kCheckpointTimeout{60000};  // of a periodic checkpoint

}  // namespace

void RunState::shard_cut(std::uint64_t id, std::uint32_t shard, const ShardLedger& ledger) {
  if (checkpoint_ && checkpoint_->id == id) checkpoint_->cuts[shard] = ledger;
}

void RunState::learner_cut(std::uint64_t id, std::uint64_t version) {
  version_ = version;
  if (checkpoint_ && checkpoint_->id == id) checkpoint_->version = version;
}

std::uint64_t RunState::Saved::inserted() const {
  std::uint64_t total = lost_with_shard + retired;
  for (const ShardLedger& shard : shards) total += shard.inserted;
  return total;
}

RunState::Saved RunState::saved() const {
  Saved saved{shards_, counters_.lost_with_shard, counters_.retired_inserted, version_, {}, {}};
  for (const ServerLedger& server : servers_) saved.sent.push_back(server.counts());
  if (checkpoint_) saved.version = checkpoint_->version.value_or(version_);
  if (counts_updates(options_)) saved.updates = saved.version;
  if (!checkpoint_) return saved;
  saved.lost_with_shard = checkpoint_->lost_with_shard;
  for (const auto& [shard, ledger] : checkpoint_->cuts)
    if (shard < saved.shards.size()) saved.shards[shard] = ledger;
  for (const auto& [server, counts] : checkpoint_->sent) saved.sent.at(server) = counts;
  for (const std::uint32_t shard : checkpoint_->missing)
    saved.lost_with_shard += std::exchange(saved.shards[shard], {}).inserted;
  return saved;
}

void RunState::begin_checkpoint(Time now, bool final) {
  Checkpoint checkpoint;
  checkpoint.id = next_id_++;
  checkpoint.deadline =
      now + (final && interrupted_ ? options_.stop.grace * 5 / 8 : kCheckpointTimeout);
  checkpoint.final = final;
  checkpoint.lost_with_shard = counters_.lost_with_shard;
  last_checkpoint_ = now;
  std::vector<std::string> participants;
  const Node* learner = ready_learner();
  for (const auto& [name, node] : nodes_)
    if (node.phase == NodePhase::kReady && !node.killed && has_state(node.plan.role) &&
        (node.plan.role != "learner" || &node == learner)) {
      participants.push_back(name);
      checkpoint.waiting.insert(name);
    } else if (node.plan.role == "shard") {
      checkpoint.missing.insert(node.plan.index);
    }
  checkpoint_ = checkpoint;
  actions_.push_back(BeginCheckpoint{checkpoint.id, actor_steps(), participants});
}

void RunState::part_written(const std::string& node, std::uint64_t id, const std::string& error) {
  if (!checkpoint_ || checkpoint_->id != id || checkpoint_->committing) return;
  if (!error.empty()) {
    drop_checkpoint(node + ": " + error);
    return;
  }
  checkpoint_->waiting.erase(node);
  finish_checkpoint_if_complete();
}

void RunState::finish_checkpoint_if_complete() {
  if (!checkpoint_ || checkpoint_->committing || !checkpoint_->waiting.empty()) return;
  checkpoint_->committing = true;
  actions_.push_back(CommitCheckpoint{checkpoint_->id});
}

void RunState::drop_checkpoint(const std::string& reason, bool again) {
  checkpoint_error_ = reason;
  actions_.push_back(AbandonCheckpoint{checkpoint_->id, reason});
  tell("", "warning", "checkpoint_failed", "checkpoint not written: " + reason);
  if (checkpoint_->final && !again) final_saved_ = true;  // no second try while stopping
  checkpoint_.reset();
}

// Environment actors start fresh episodes where they have no part; nobody else can be missing.
void RunState::end_waiting() {
  for (const std::string& name : std::set<std::string>(checkpoint_->waiting)) {
    if (!is_actor(nodes_.at(name).plan.role))
      return drop_checkpoint(name + " did not write its part in time");
    tell(name, "warning", "part_missing",
         name + " did not write its part in time; the checkpoint stands without it");
    checkpoint_->waiting.erase(name);
  }
  finish_checkpoint_if_complete();
}

void RunState::checkpoint_committed(std::uint64_t id, const std::string& error, Time now) {
  if (!checkpoint_ || checkpoint_->id != id) return;
  checkpoint_error_ = error;
  if (!error.empty()) tell("", "error", "checkpoint_failed", "checkpoint not written: " + error);
  if (checkpoint_->final) final_saved_ = true;
  if (error.empty()) final_steps_ = saved().actor_steps();
  if (error.empty())
    for (auto& [name, node] : nodes_) node.added = false;
  last_checkpoint_ = now;
  checkpoint_.reset();
}

}  // namespace troupe::actors
