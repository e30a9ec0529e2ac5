// The coordinator's decisions as a pure class: membership, restarts, checkpoints, evaluations and
// the end of the run. Time is a parameter; what is to be done comes out as actions. One owner.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "actors/config/run_options.hpp"
#include "actors/roles/server_ledger.hpp"
#include "actors/roles/step_limits.hpp"
#include "actors/roles/topology.hpp"
#include "actors/runtime/liveness.hpp"
#include "actors/runtime/restart_budget.hpp"
#include "envs/spec/result.hpp"

namespace troupe::actors {

// What the coordinator does next, in order.
struct StartNode {
  std::string node;
  std::uint32_t incarnation = 0;
  std::uint32_t epoch = 0;
};
struct KillNode {  // SIGKILL; its end comes back as node_ended
  std::string node;
};
struct ShutdownNode {
  std::string node;
  std::string reason;
};
struct PingNode {
  std::string node;
  std::uint64_t number = 0;
};
struct DrainNode {  // finish what is under way, then end
  std::string node;
};
struct PauseNode {
  std::string node;
};
struct BeginCheckpoint {  // make the directory, then ask every participant
  std::uint64_t id = 0;
  std::uint64_t actor_steps = 0;
  std::vector<std::string> participants;
};
struct CommitCheckpoint {  // write state and manifest; answer with checkpoint_committed
  std::uint64_t id = 0;
};
struct AbandonCheckpoint {
  std::uint64_t id = 0;
  std::string reason;
};
struct BeginEvaluation {
  std::string node;
  std::uint64_t id = 0;
  std::uint64_t actor_steps = 0;
  std::uint64_t version = 0;
};
struct Tell {  // a line for the log and the watchers
  std::string node, level, kind, text;
};
struct LimitSteps {  // of each shard, in all; see StepLimits
  std::vector<std::uint64_t> inserted;
};
struct EndRun {  // every node is gone
  int exit_code = 0;
  std::string text;
};
using Action =
    std::variant<StartNode, KillNode, ShutdownNode, DrainNode, PingNode, PauseNode, BeginCheckpoint,
                 CommitCheckpoint, AbandonCheckpoint, BeginEvaluation, Tell, LimitSteps, EndRun>;

// Counters that outlive nodes; saved with every checkpoint.
struct RunCounters {
  std::uint64_t lost_with_shard = 0;  // steps
  std::uint64_t wall_ms = 0;          // of earlier sessions
  std::uint64_t next_evaluation = 0;  // actor steps
  std::map<std::string, std::uint32_t> incarnations;
  std::vector<std::uint64_t> inserted;  // steps of each shard, lost ones not included
  ScaledCounts scaled;
  std::vector<UpdateCounts> updates;  // of each parameter server
  // Of shards that were scaled away, in steps: all that they held then is removed.
  std::uint64_t retired_inserted = 0, retired_prefilled = 0;
};

// A shard's ledger as last reported: inserted + prefilled = held + removed, in steps.
struct ShardLedger {
  std::uint64_t inserted = 0, held = 0, removed = 0, prefilled = 0;
};

class RunState {
 public:
  using Time = std::chrono::steady_clock::time_point;
  enum class Phase { kRunning, kSaving, kLeaving, kOver };

  RunState(const RunOptions& options, std::vector<NodePlan> plan, RunCounters counters, Time now);

  // Inputs. Unknown nodes and old incarnations are ignored.
  // False: that node or incarnation is not expected.
  bool node_joined(const std::string& node, std::uint32_t incarnation, Time now);
  // `restored`: inserted steps of each shard from `first_shard` on; `version` of a learner or
  // parameter server.
  void role_ready(const std::string& node, std::uint32_t incarnation, std::uint32_t first_shard,
                  const std::vector<std::uint64_t>& restored, std::uint64_t version, Time now);
  void pong(const std::string& node, std::uint32_t incarnation, std::uint64_t number,
            std::uint64_t busy_ms, const std::string& busy_with, Time now);
  // `limit`: the steps up to which it inserts now, as LimitSteps told it.
  void shard_reported(std::uint32_t shard, const ShardLedger& ledger, std::uint64_t limit = 0);
  // What the shard had inserted when its process ended (StepMark): its last report may be older.
  // Comes before node_ended.
  void shard_left(std::uint32_t shard, std::uint64_t inserted);
  // What the shard's part of this checkpoint holds.
  void shard_cut(std::uint64_t checkpoint, std::uint32_t shard, const ShardLedger& ledger);
  void learner_reported(std::uint64_t version) { version_ = version; }
  // Of a parameter server; in its mark when its process ended, before node_ended.
  void server_said(std::uint32_t server, const ServerLife& life);
  void server_cut(std::uint64_t checkpoint, std::uint32_t server, const ServerLife& life);
  // A group of asynchronous learners has a new generation; those of later sessions follow it.
  void group_formed(std::uint32_t group, std::uint32_t generation);
  std::uint32_t last_generation(std::uint32_t group) const;
  // Of several learners, the one that counts for the run; empty: none does now.
  void learner_leads(const std::string& node) { leader_ = node; }
  // The version that the learner's part of this checkpoint holds.
  void learner_cut(std::uint64_t checkpoint, std::uint64_t version);
  // `reason` empty: orderly. `permanent`: no restart would help. Comes once per incarnation, when
  // its process (or in-process actor) is gone.
  void node_ended(const std::string& node, std::uint32_t incarnation, const std::string& reason,
                  bool permanent, Time now);
  void part_written(const std::string& node, std::uint64_t checkpoint, const std::string& error);
  void checkpoint_committed(std::uint64_t checkpoint, const std::string& error, Time now);
  // `mean_return`: of a classifier its accuracy.
  void evaluation_done(std::uint64_t evaluation, double mean_return, const std::string& error);
  void stop(const std::string& reason, bool interrupted, bool hurry, Time now);
  void fail(const std::string& reason, Time now);
  // So many nodes of "actors", "learners" or "shards", all of it or nothing. Those that are too
  // many leave: the highest first, when they have finished what is under way. The text says what is
  // done; kInvalidArgument says why not.
  Result<std::string> scale(const std::map<std::string, std::uint32_t>& counts, Time now);
  // One node leaves for good; the run goes on with one less of its role.
  Result<std::string> drain(const std::string& node, Time now);

  // Time passes; call every 50-200 ms.
  void tick(Time now);

  // Actions since the last call, in order.
  std::vector<Action> take_actions();

  Phase phase() const { return phase_; }
  // Updates in a run without environment steps: its schedules and files count them instead.
  std::uint64_t actor_steps() const;
  std::uint64_t version() const { return version_; }
  std::uint64_t wall_ms(Time now) const;
  const std::vector<ShardLedger>& shards() const { return shards_; }
  const RunCounters& counters() const { return counters_; }
  // Of all shards, those that are over included.
  ShardLedger ledger() const;
  // Shards of this run that take no more steps: that are about to leave, or have left for good.
  std::vector<std::uint32_t> leaving_shards() const;
  std::vector<std::uint32_t> gone_shards() const;
  bool has(const std::string& node) const { return nodes_.contains(node); }
  // Whether it begins without what checkpoints hold under its name: it was added since.
  bool begins_empty(const std::string& node) const;
  // All nodes, those that were added included; one that has left is in it no longer.
  const std::vector<NodePlan>& plan() const { return plan_; }
  // Why it ends; empty while it runs.
  std::string stopping() const { return phase_ == Phase::kRunning ? "" : end_text_; }
  // Why the last checkpoint was not written; empty when it was.
  const std::string& checkpoint_error() const { return checkpoint_error_; }
  // What the checkpoint that is being committed holds: the learner's version and the shards' cuts,
  // or their last reports where there is none, and what had been lost when it began. A shard that
  // was not there has no part in it: all that it held is lost to whoever resumes from it.
  struct Saved {
    std::vector<ShardLedger> shards;
    std::uint64_t lost_with_shard = 0;
    std::uint64_t retired = 0;  // inserted by shards that have left
    std::uint64_t version = 0;
    std::optional<std::uint64_t> updates;  // `version`, in a run without environment actors
    std::vector<UpdateCounts> sent;        // of each parameter server
    std::uint64_t inserted() const;
    std::uint64_t actor_steps() const { return updates.value_or(inserted()); }
  };
  Saved saved() const;
  // Ready nodes, for displays.
  std::size_t ready(const std::string& role) const;
  // Whether this is the present life of that node.
  bool is_current(const std::string& node, std::uint32_t incarnation) const;
  // How a node stands, for whoever asks.
  struct NodeView {
    std::string state;  // as state_of
    std::uint32_t incarnation = 0;
    std::int64_t restarts_left = 0, restarts_allowed = 0;
    std::chrono::milliseconds restart_in{0};  // of one that waits for its next start
  };
  NodeView view(const std::string& node, Time now) const;
  // For the status display: starting | joined | ready | silent | leaving | restarting | ended.
  std::string state_of(const std::string& node) const;

 private:
  enum class NodePhase { kStarting, kJoined, kReady, kEnded };
  struct Node {
    Node(NodePlan node_plan, RestartBudget restart_budget)
        : plan(std::move(node_plan)), budget(std::move(restart_budget)) {}
    NodePlan plan;
    NodePhase phase = NodePhase::kEnded;
    std::uint32_t incarnation = 0;
    Time since{};                    // of the phase
    bool killed = false;             // KillNode was asked for
    std::optional<Time> restart_at;  // kEnded and waiting
    std::optional<Time> leave_by;    // it is to leave
    bool asked = false;              // it has been told so
    bool added = false;              // since the last checkpoint
    std::string kill_reason;
    std::optional<Liveness> liveness;  // since it joined
    Health health = Health::kAlive;
    RestartBudget budget;
  };
  struct Checkpoint {
    std::uint64_t id = 0;
    Time deadline{};
    std::set<std::string> waiting;
    std::uint64_t lost_with_shard = 0;
    std::map<std::uint32_t, ShardLedger> cuts;
    std::set<std::uint32_t> missing;  // shards that were not there when it began
    std::optional<std::uint64_t> version;
    std::map<std::uint32_t, UpdateCounts> sent;  // to parameter servers
    bool committing = false;
    bool final = false;
  };

  Node& add_node(const NodePlan& plan);
  void start(Node& node, Time now);
  void kill(Node& node, const std::string& reason);
  void tick_nodes(Time now);
  void ping(Node& node, Time now);
  void came_back(Node& node);
  void tick_running(Time now);
  void tick_saving(Time now);
  void tick_leaving(Time now);
  void limit_steps();
  void begin_checkpoint(Time now, bool final);
  // `again`: of the run's last one, another is tried.
  void drop_checkpoint(const std::string& reason, bool again = false);
  void finish_checkpoint_if_complete();
  void end_waiting();
  void leave(Time now);
  void leave_servers();  // once no learner is left
  // run_state_scale.cpp
  Result<std::string> check_scale(const std::string& word, std::uint32_t count) const;
  std::vector<std::string> staying(const std::string& role) const;
  void add_nodes(const std::string& role, std::uint32_t count, Time now);
  void begin_leaving(Node& node, Time now);
  void tick_leavers(Time now);
  void retire(const std::string& name, const std::string& why, Time now);
  void retire_shard(const Node& node, Time now);
  void note_count(const std::string& role);
  bool stateful_leavers() const;  // that have been told so
  void tell(const std::string& node, const std::string& level, const std::string& kind,
            std::string text);
  Node* find(const std::string& name, std::uint32_t incarnation);
  const Node* ready_node(const std::string& role) const;
  const Node* ready_learner() const;  // the one that leads
  bool all_ended() const;
  // Every shard with a process of its own and every parameter server serves: without one, a
  // checkpoint would lack its part.
  bool parts_ready() const;
  // Likewise of parameter servers alone, without which nothing could be resumed from it.
  bool servers_ready() const;
  void server_began(const Node& node, std::uint64_t version);
  std::string ledger_of_servers() const;  // as a sentence

  const RunOptions options_;
  std::vector<NodePlan> plan_;
  std::map<std::string, Node> nodes_;
  RunCounters counters_;
  std::vector<ShardLedger> shards_;
  std::vector<ServerLedger> servers_;
  std::uint64_t version_ = 0;
  std::string leader_;
  Phase phase_ = Phase::kRunning;
  Time started_, last_checkpoint_, phase_since_;
  std::uint64_t next_id_ = 1;
  StepShares step_shares_;
  bool tell_limits_ = false;  // whoever is new must hear of them
  std::optional<Checkpoint> checkpoint_;
  std::string checkpoint_error_;
  std::optional<BeginEvaluation> evaluation_;  // running
  Time evaluation_since_{};
  std::uint64_t evaluated_version_ = ~std::uint64_t{0};
  bool final_saved_ = false;
  std::optional<std::uint64_t> final_steps_;  // of the last checkpoint
  bool final_evaluated_ = false;
  int exit_code_ = 0;
  std::string end_text_;
  bool interrupted_ = false;
  bool hurry_ = false;
  bool servers_leave_ = false;
  std::vector<Action> actions_;
};

}  // namespace troupe::actors
