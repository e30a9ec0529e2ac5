// Implements the coordinator's decisions about nodes. Checkpoints are in run_state_checkpoint.cpp,
// evaluations and the end of the run in run_state_end.cpp, parameter servers in
// run_state_servers.cpp.
#include "actors/roles/run_state.hpp"

#include <algorithm>

#include "actors/config/checks.hpp"

namespace troupe::actors {

using std::chrono::duration_cast;
using std::chrono::milliseconds;

namespace {

constexpr milliseconds kJoinTimeout{30000};   // from process start to hello
constexpr milliseconds kReadyTimeout{60000};  // from hello to a serving role

}  // namespace

RunState::RunState(const RunOptions& options, std::vector<NodePlan> plan, RunCounters counters,
                   Time now)
    : options_(options),
      counters_(std::move(counters)),
      shards_(static_cast<std::size_t>(counters_.scaled.shard_places(options))),
      started_(now),
      last_checkpoint_(now),
      phase_since_(now) {
  if (counters_.scaled.shards.configured != options_.replay.shards)
    counters_.scaled.gone_shards.clear();
  if (counters_.next_evaluation == 0)
    counters_.next_evaluation = static_cast<std::uint64_t>(options_.evaluation.every);
  for (std::size_t i = 0; i < counters_.inserted.size(); ++i) {
    const std::uint64_t steps = counters_.inserted[i];
    if (i < shards_.size())
      shards_[i] = ShardLedger{steps, steps, 0};
    else
      counters_.lost_with_shard += steps;  // a shard that this configuration no longer has
  }
  for (std::size_t i = 0; i < shards_.size(); ++i) {
    step_shares_.restart(i, shards_[i].inserted);
    if (counters_.scaled.is_gone(options_, static_cast<std::uint32_t>(i))) step_shares_.leave(i);
  }
  counters_.updates.resize(static_cast<std::size_t>(parameter_servers(options_)));
  for (const UpdateCounts& counts : counters_.updates) servers_.emplace_back(counts);
  for (const NodePlan& node_plan : plan) start(add_node(node_plan), now);
}

RunState::Node& RunState::add_node(const NodePlan& plan) {
  plan_.push_back(plan);
  Node node(plan, RestartBudget({.restarts = options_.supervision.restarts,
                                 .window = options_.supervision.window}));
  node.incarnation = counters_.incarnations[plan.name];
  return nodes_.emplace(plan.name, std::move(node)).first->second;
}

std::uint64_t RunState::actor_steps() const {
  if (counts_updates(options_)) return version_;
  std::uint64_t total = counters_.lost_with_shard + counters_.retired_inserted;
  for (const ShardLedger& shard : shards_) total += shard.inserted;
  return total;
}

ShardLedger RunState::ledger() const {
  ShardLedger all{.inserted = counters_.lost_with_shard + counters_.retired_inserted,
                  .held = 0,
                  .removed = counters_.retired_inserted + counters_.retired_prefilled,
                  .prefilled = counters_.retired_prefilled};
  for (const ShardLedger& shard : shards_) {
    all.inserted += shard.inserted;
    all.held += shard.held;
    all.removed += shard.removed;
    all.prefilled += shard.prefilled;
  }
  return all;
}

std::uint64_t RunState::wall_ms(Time now) const {
  return counters_.wall_ms +
         static_cast<std::uint64_t>(duration_cast<milliseconds>(now - started_).count());
}

std::size_t RunState::ready(const std::string& role) const {
  return static_cast<std::size_t>(
      std::count_if(nodes_.begin(), nodes_.end(), [&](const auto& entry) {
        return entry.second.plan.role == role && entry.second.phase == NodePhase::kReady;
      }));
}

std::string RunState::state_of(const std::string& node) const {
  const auto found = nodes_.find(node);
  if (found == nodes_.end()) return "unknown";
  switch (found->second.phase) {
    case NodePhase::kStarting:
      return "starting";
    case NodePhase::kJoined:
      return "joined";
    case NodePhase::kReady:
      if (found->second.health != Health::kAlive) return "silent";
      return found->second.leave_by ? "leaving" : "ready";
    case NodePhase::kEnded:
      return found->second.restart_at ? "restarting" : "ended";
  }
  return "unknown";
}

RunState::NodeView RunState::view(const std::string& name, Time now) const {
  const Node& node = nodes_.at(name);
  NodeView view{.state = state_of(name),
                .incarnation = node.incarnation,
                .restarts_left = node.budget.allowed() - node.budget.used(now),
                .restarts_allowed = node.budget.allowed()};
  if (node.restart_at && *node.restart_at > now)
    view.restart_in = duration_cast<milliseconds>(*node.restart_at - now);
  return view;
}

bool RunState::is_current(const std::string& node, std::uint32_t incarnation) const {
  const auto found = nodes_.find(node);
  return found != nodes_.end() && found->second.incarnation == incarnation &&
         found->second.phase != NodePhase::kEnded;
}

RunState::Node* RunState::find(const std::string& name, std::uint32_t incarnation) {
  const auto found = nodes_.find(name);
  if (found == nodes_.end() || found->second.incarnation != incarnation) return nullptr;
  return &found->second;
}

const RunState::Node* RunState::ready_node(const std::string& role) const {
  for (const auto& [name, node] : nodes_)
    if (node.plan.role == role && node.phase == NodePhase::kReady) return &node;
  return nullptr;
}

void RunState::tell(const std::string& node, const std::string& level, const std::string& kind,
                    std::string text) {
  actions_.push_back(Tell{node, level, kind, std::move(text)});
}

std::vector<Action> RunState::take_actions() { return std::exchange(actions_, {}); }

// Every start is a new incarnation, also the first after a resume: nothing of an earlier life
// counts.
void RunState::start(Node& node, Time now) {
  node.phase = NodePhase::kStarting;
  node.since = now;
  node.killed = false;
  node.restart_at.reset();
  node.kill_reason.clear();
  counters_.incarnations[node.plan.name] = ++node.incarnation;
  // The incarnation of a learner or shard is its epoch: it only grows, over resumes too.
  actions_.push_back(StartNode{node.plan.name, node.incarnation, node.incarnation});
}

void RunState::kill(Node& node, const std::string& reason) {
  if (node.killed || node.phase == NodePhase::kEnded) return;
  node.killed = true;
  node.kill_reason = reason;
  tell(node.plan.name, "warning", "killed", node.plan.name + " is killed: " + reason);
  actions_.push_back(KillNode{node.plan.name});
}

bool RunState::node_joined(const std::string& name, std::uint32_t incarnation, Time now) {
  Node* node = find(name, incarnation);
  if (node == nullptr || node->phase == NodePhase::kEnded) return false;
  if (node->phase == NodePhase::kStarting) {
    node->phase = NodePhase::kJoined;
    node->since = now;
  } else {
    came_back(*node);
  }
  node->liveness.emplace(LivenessOptions::lost_after(options_.supervision.silent_after), now);
  node->health = Health::kAlive;
  return true;
}

// Its connection broke: what was sent meanwhile, in either direction, may be lost.
void RunState::came_back(Node& node) {
  const std::string& name = node.plan.name;
  // Not asked for again: a part that is still being written would change under its checksum.
  if (checkpoint_ && !checkpoint_->committing && checkpoint_->waiting.count(name) > 0)
    drop_checkpoint("the connection to " + name + " broke before its part stood", true);
  if (evaluation_ && evaluation_->node == name) actions_.push_back(*evaluation_);
  node.asked = false;
  tell_limits_ = true;
  if (phase_ != Phase::kRunning && is_actor(node.plan.role)) actions_.push_back(PauseNode{name});
  if (phase_ == Phase::kLeaving && (node.plan.role != "parameter_server" || servers_leave_))
    actions_.push_back(ShutdownNode{name, end_text_});
}

void RunState::role_ready(const std::string& name, std::uint32_t incarnation,
                          std::uint32_t first_shard, const std::vector<std::uint64_t>& restored,
                          std::uint64_t version, Time now) {
  Node* node = find(name, incarnation);
  if (node == nullptr || node->phase == NodePhase::kEnded) return;
  node->phase = NodePhase::kReady;
  node->since = now;
  for (std::size_t i = 0; i < restored.size() && first_shard + i < shards_.size(); ++i) {
    // What an earlier life of this shard held beyond what was restored is lost with it.
    ShardLedger& shard = shards_[first_shard + i];
    if (shard.inserted > restored[i]) {
      const std::uint64_t lost = shard.inserted - restored[i];
      counters_.lost_with_shard += lost;
      tell(name, "warning", "lost_with_shard",
           "shard " + std::to_string(first_shard + i) + " came back without the " +
               std::to_string(lost) + " steps inserted since its last checkpoint");
    }
    shard = ShardLedger{restored[i], restored[i], 0};
    step_shares_.restart(first_shard + i, restored[i]);
  }
  // One of several begins with what the others have, whatever it restored.
  if (node->plan.role == "learner" && !learns_in_groups(options_)) version_ = version;
  if (node->plan.role == "parameter_server") server_began(*node, version);
  tell_limits_ = true;
  tell(name, "info", "ready", name + " serves");
}

void RunState::pong(const std::string& name, std::uint32_t incarnation, std::uint64_t number,
                    std::uint64_t busy_ms, const std::string& busy_with, Time now) {
  Node* node = find(name, incarnation);
  if (node == nullptr || node->phase == NodePhase::kEnded) return;
  if (node->liveness) node->liveness->pong(number, now);
  const auto limit = static_cast<std::uint64_t>(options_.supervision.step_timeout.count());
  if (node->phase == NodePhase::kReady && is_actor(node->plan.role) && busy_ms > limit)
    kill(*node, "hung for " + std::to_string(busy_ms / 1000) + " s in " + busy_with);
}

void RunState::shard_reported(std::uint32_t shard, const ShardLedger& ledger, std::uint64_t limit) {
  if (shard >= shards_.size()) return;
  shards_[shard] = ledger;
  step_shares_.report(shard, ledger.inserted, limit);
}

void RunState::shard_left(std::uint32_t shard, std::uint64_t inserted) {
  if (shard >= shards_.size() || inserted <= shards_[shard].inserted) return;
  shards_[shard].held += inserted - shards_[shard].inserted;
  shards_[shard].inserted = inserted;
}

const RunState::Node* RunState::ready_learner() const {
  if (!learns_in_groups(options_)) return ready_node("learner");
  const auto found = nodes_.find(leader_);
  return found == nodes_.end() || found->second.phase != NodePhase::kReady ? nullptr
                                                                           : &found->second;
}

bool RunState::parts_ready() const {
  return servers_ready() && std::none_of(nodes_.begin(), nodes_.end(), [](const auto& entry) {
           return entry.second.plan.role == "shard" && entry.second.phase != NodePhase::kReady;
         });
}

void RunState::node_ended(const std::string& name, std::uint32_t incarnation,
                          const std::string& reason, bool permanent, Time now) {
  Node* node = find(name, incarnation);
  if (node == nullptr || node->phase == NodePhase::kEnded) return;
  const std::string why = node->kill_reason.empty() ? reason : node->kill_reason;
  const bool served = node->phase == NodePhase::kReady;
  node->phase = NodePhase::kEnded;
  node->since = now;
  if (checkpoint_) {
    if (is_actor(node->plan.role) || node->plan.role == "evaluator") {
      checkpoint_->waiting.erase(name);
      finish_checkpoint_if_complete();
    } else if (!checkpoint_->committing && checkpoint_->waiting.count(name) > 0) {
      drop_checkpoint(name + " ended before its part stood");
    }
  }
  if (node->plan.role == "evaluator") evaluation_.reset();
  if (node->leave_by) return retire(name, why, now);
  if (phase_ != Phase::kRunning) {
    if (!why.empty()) tell(name, "warning", "ended", name + " ended while the run stops: " + why);
    return;
  }
  const std::string cause = why.empty() ? "it left by itself" : why;
  if (permanent) {
    const std::string text = name + (served ? " cannot go on: " : " cannot start: ") + cause;
    tell(name, "error", "gave_up", text);
    return fail(text, now);
  }
  node->restart_at = node->budget.next_restart(now);
  if (node->restart_at) {
    const auto pause = duration_cast<milliseconds>(*node->restart_at - now);
    tell(name, "warning", "restart",
         name + " ended (" + cause + ") and is started again in " + std::to_string(pause.count()) +
             " ms");
    return;
  }
  tell(name, "error", "gave_up",
       name + " ended (" + cause + ") and has used up its " +
           std::to_string(options_.supervision.restarts) + " restarts");
  const auto left = std::count_if(nodes_.begin(), nodes_.end(), [&](const auto& entry) {
    const Node& other = entry.second;
    return other.plan.role == node->plan.role &&
           (other.phase != NodePhase::kEnded || other.restart_at.has_value());
  });
  const bool spare = (is_actor(node->plan.role) && left >= options_.actors.min) ||
                     (node->plan.role == "learner" && left >= 1);
  if (!spare) fail(name + " cannot be kept alive: " + cause, now);
}

void RunState::tick_nodes(Time now) {
  for (auto& [name, node] : nodes_) {
    switch (node.phase) {
      case NodePhase::kStarting:
        if (now - node.since > kJoinTimeout) kill(node, "it did not connect within 30 s");
        break;
      case NodePhase::kJoined:
        if (now - node.since > kReadyTimeout) kill(node, "its role did not start within 60 s");
        [[fallthrough]];
      case NodePhase::kReady:
        ping(node, now);
        break;
      case NodePhase::kEnded:
        if (node.restart_at && now >= *node.restart_at && phase_ == Phase::kRunning)
          start(node, now);
        break;
    }
  }
}

void RunState::ping(Node& node, Time now) {
  if (const auto number = node.liveness->ping_due(now))
    actions_.push_back(PingNode{node.plan.name, *number});
  const Health before = std::exchange(node.health, node.liveness->health());
  if (node.health == Health::kSilent && before == Health::kAlive)
    tell(node.plan.name, "warning", "silent", node.plan.name + " does not answer pings");
  if (node.health == Health::kLost)
    kill(node, "it answered no ping for " +
                   std::to_string(options_.supervision.silent_after.count() / 1000) + " s");
}

void RunState::tick(Time now) {
  tick_nodes(now);
  tick_leavers(now);
  if (checkpoint_ && !checkpoint_->committing && now > checkpoint_->deadline) end_waiting();
  if (evaluation_ && now - evaluation_since_ > options_.evaluation.timeout) {
    tell("", "warning", "evaluation_lost",
         "an evaluation gave no result within evaluation.timeout, " +
             std::to_string(options_.evaluation.timeout.count() / 1000) + " s");
    evaluation_.reset();
  }
  switch (phase_) {
    case Phase::kRunning:
      tick_running(now);
      break;
    case Phase::kSaving:
      tick_saving(now);
      break;
    case Phase::kLeaving:
      tick_leaving(now);
      break;
    case Phase::kOver:
      break;
  }
}

}  // namespace troupe::actors
