// The running phase's schedules and how a run ends: save, evaluate, leave, over.
#include <algorithm>
#include <utility>

#include "actors/config/checks.hpp"
#include "actors/roles/run_state.hpp"

namespace troupe::actors {

using std::chrono::milliseconds;

void RunState::tick_running(Time now) {
  const auto& wanted = options_.stop;
  if (wanted.actor_steps > 0 && actor_steps() >= static_cast<std::uint64_t>(wanted.actor_steps))
    return stop("stop.actor_steps reached", false, false, now);
  if (wanted.updates > 0 && version_ >= static_cast<std::uint64_t>(wanted.updates))
    return stop("stop.updates reached", false, false, now);
  if (wanted.wall_time.count() > 0 &&
      wall_ms(now) >= static_cast<std::uint64_t>(wanted.wall_time.count()))
    return stop("stop.wall_time reached", false, false, now);

  limit_steps();
  const Node* learner = ready_learner();
  if (options_.checkpoint.every.count() > 0 && !checkpoint_ && learner != nullptr &&
      parts_ready() && !stateful_leavers() && now - last_checkpoint_ >= options_.checkpoint.every)
    begin_checkpoint(now, false);

  const Node* evaluator = ready_node("evaluator");
  if (options_.evaluation.every > 0 && !evaluation_ && evaluator != nullptr && learner != nullptr &&
      actor_steps() >= counters_.next_evaluation) {
    evaluation_ = BeginEvaluation{evaluator->plan.name, next_id_++, actor_steps(), version_};
    evaluation_since_ = now;
    evaluated_version_ = version_;
    actions_.push_back(*evaluation_);
    const auto every = static_cast<std::uint64_t>(options_.evaluation.every);
    counters_.next_evaluation = (actor_steps() / every + 1) * every;
  }
}

void RunState::limit_steps() {
  if (options_.stop.actor_steps <= 0 || counts_updates(options_)) return;
  const auto wanted = static_cast<std::uint64_t>(options_.stop.actor_steps);
  const bool asked = std::exchange(tell_limits_, false);
  const std::uint64_t over = counters_.lost_with_shard + counters_.retired_inserted;
  if (step_shares_.deal(wanted - std::min(wanted, over)) || asked)
    actions_.push_back(LimitSteps{step_shares_.limits()});
}

void RunState::evaluation_done(std::uint64_t id, double mean_return, const std::string& error) {
  if (!evaluation_ || evaluation_->id != id) return;
  evaluation_.reset();
  if (!error.empty()) {
    tell("", "warning", "evaluation_failed", "an evaluation failed: " + error);
    return;
  }
  const auto& wanted = options_.stop;
  if (phase_ == Phase::kRunning && wanted.mean_return && mean_return >= *wanted.mean_return)
    stop("stop.return reached", false, false, phase_since_);
  if (phase_ == Phase::kRunning && wanted.accuracy && mean_return >= *wanted.accuracy)
    stop("stop.accuracy reached", false, false, phase_since_);
}

void RunState::stop(const std::string& reason, bool interrupted, bool hurry, Time now) {
  if (phase_ == Phase::kOver) return;
  if (interrupted) {
    // A signal during an orderly end only shortens it; what has finished stays finished.
    interrupted_ = true;
    if (exit_code_ == 0 && phase_ == Phase::kRunning) exit_code_ = 130;
    if (checkpoint_ && !checkpoint_->committing)
      checkpoint_->deadline = std::min(checkpoint_->deadline, now + options_.stop.grace * 5 / 8);
  }
  hurry_ = hurry_ || hurry;
  if (phase_ != Phase::kRunning) {
    if (hurry && phase_ != Phase::kLeaving) leave(now);
    return;
  }
  end_text_ = reason;
  tell("", "info", "stopping", "the run stops: " + reason);
  phase_ = Phase::kSaving;
  phase_since_ = now;
  for (auto& [name, node] : nodes_) {
    if (is_actor(node.plan.role) && node.phase == NodePhase::kReady)
      actions_.push_back(PauseNode{name});
    // The last checkpoint is of those who stay; who was not told yet stays.
    if (node.leave_by && !node.asked)
      node.leave_by.reset();
    else if (node.leave_by)
      node.leave_by = std::min(*node.leave_by, now + options_.stop.grace / 4);
  }
  if (hurry) leave(now);
}

void RunState::fail(const std::string& reason, Time now) {
  if (phase_ == Phase::kOver) return;
  tell("", "error", "failed", reason);
  exit_code_ = 1;
  if (phase_ == Phase::kRunning) {
    stop(reason, false, false, now);
    interrupted_ = true;  // no final evaluation, short deadlines
    exit_code_ = 1;
  }
  end_text_ = reason;
}

void RunState::tick_saving(Time now) {
  const Node* learner = ready_learner();
  // A shard that is just starting gets a moment, so that its table is in the last checkpoint.
  const bool complete =
      (parts_ready() || now - phase_since_ > options_.stop.grace / 4) && !stateful_leavers();
  if ((learner == nullptr || (complete && !servers_ready())) && !checkpoint_)
    final_saved_ = true;  // nothing newer than the last checkpoint
  if (!final_saved_ && !checkpoint_ && complete) begin_checkpoint(now, true);
  const Node* evaluator = ready_node("evaluator");
  // After the checkpoint and under its steps: a resumed run keeps what lies up to its checkpoint.
  if (final_saved_ && !checkpoint_ && !final_evaluated_ && !interrupted_ && !evaluation_ &&
      evaluator != nullptr && learner != nullptr && evaluated_version_ != version_) {
    evaluation_ = BeginEvaluation{evaluator->plan.name, next_id_++,
                                  final_steps_.value_or(actor_steps()), version_};
    evaluation_since_ = now;
    evaluated_version_ = version_;
    final_evaluated_ = true;
    actions_.push_back(*evaluation_);
  }
  const bool evaluating = evaluation_ && evaluator != nullptr && !interrupted_;
  if (final_saved_ && !checkpoint_ && !evaluating) leave(now);
}

void RunState::leave(Time now) {
  phase_ = Phase::kLeaving;
  phase_since_ = now;
  if (!servers_.empty()) tell("", "info", "updates", ledger_of_servers());
  for (auto& [name, node] : nodes_) {
    node.restart_at.reset();
    if (node.phase == NodePhase::kEnded) continue;
    // Learners that are under way wait for its answers.
    if (node.plan.role == "parameter_server" && !hurry_) continue;
    if (hurry_ || node.phase == NodePhase::kStarting) {
      kill(node, "the run ends");
    } else {
      actions_.push_back(ShutdownNode{name, end_text_});
    }
  }
}

bool RunState::all_ended() const {
  return std::all_of(nodes_.begin(), nodes_.end(),
                     [](const auto& entry) { return entry.second.phase == NodePhase::kEnded; });
}

void RunState::leave_servers() {
  const bool asked = std::any_of(nodes_.begin(), nodes_.end(), [](const auto& entry) {
    return entry.second.plan.role == "learner" && entry.second.phase != NodePhase::kEnded;
  });
  if (asked || std::exchange(servers_leave_, true)) return;
  for (auto& [name, node] : nodes_)
    if (node.plan.role == "parameter_server" && node.phase != NodePhase::kEnded)
      actions_.push_back(ShutdownNode{name, end_text_});
}

void RunState::tick_leaving(Time now) {
  leave_servers();
  if (now - phase_since_ > options_.stop.grace * 3 / 8)
    for (auto& [name, node] : nodes_) kill(node, "it did not end within the grace time");
  if (!all_ended()) return;
  phase_ = Phase::kOver;
  actions_.push_back(EndRun{exit_code_, end_text_});
}

}  // namespace troupe::actors
