// Merges what all nodes report into the run's one picture: totals, rates, what waits on what, ETA.
// A pure class driven by the telemetry hub actor: time is a parameter in seconds from any origin
// that does not jump (steady clock). Used by one thread at a time.
//
// Names with a meaning (every other name is carried through unchanged):
//   counters  actor_steps        control steps of training, by an environment actor, since its
//   incarnation
//             learner_updates    the learner's parameter version: an absolute number
//             inserted, sampled  items into and out of a shard's tables, since its incarnation
//             <what>_ms          time spent on <what>; <what>_blocked_ms and <what>_wait_ms are
//             waiting,
//                                for instance insert_blocked_ms, sample_blocked_ms,
//                                credit_blocked_ms
//   gauges    policy_version     version that the environment actor acts with
//             policy_lag         updates between acting and learning, as a learner or shard sees
//             it; wins
//                                over the difference of versions
//             loss, loss/<part>  shown as the run's losses, and so are accuracy and epoch
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "actors/telemetry/protocol.hpp"
#include "actors/telemetry/rate_window.hpp"

namespace troupe::actors::telemetry {

// What one node says about itself, about once a second.
struct NodeReport {
  std::string node{};
  std::string role{};
  std::uint64_t incarnation = 0;             // a new one starts its counters at 0 again
  std::map<std::string, double> counters{};  // only grow within an incarnation
  std::map<std::string, double> gauges{};    // as of now; NaN and infinities are shown as they are
  std::string waiting_on{};                  // what it is blocked on right now; empty: nothing
};

// One row of metrics.jsonl and progress.csv.
struct MetricsRow {
  double time = 0;     // Unix seconds
  double elapsed = 0;  // s, earlier sessions included
  std::int64_t actor_steps = 0, learner_updates = 0;
  Metrics values{};
};

struct HubOptions {
  std::string job{}, task{};
  std::int64_t pid = 0;
  std::int64_t target_actor_steps = 0, target_updates = 0;  // stop conditions; 0: none
  double target_elapsed = 0;                                // s; 0: none
  double samples_per_insert = kUnknown;                     // configured; NaN: none is kept
  // From the checkpoint that the run resumes.
  std::int64_t restored_actor_steps = 0, restored_updates = 0;
  double earlier_elapsed = 0;  // s of wall time in earlier sessions
};

class TelemetryHub {
 public:
  TelemetryHub(HubOptions options, double now);

  void report(const NodeReport& report, double now);
  // State as the coordinator sees it; `rate` and `waiting_on` are filled in from the node's
  // reports.
  void set_node(const NodeStatus& node);
  // Its counts stay in the totals; it leaves the table of nodes and the means.
  void remove_node(const std::string& node);
  void add_episode(const Episode& episode);
  void add_evaluation(const Evaluation& evaluation, std::int64_t actor_steps);
  // "starting" … "finished", and why; see RunStatus.
  void set_state(const std::string& state, const std::string& reason = "");
  // Adds to a named fault or loss counter; set_count for one kept elsewhere.
  void count(const std::string& name, double increment = 1);
  void set_count(const std::string& name, double total);

  // Never falls. Restored steps and those of dead incarnations included.
  std::int64_t actor_steps() const;
  // The newest version a live learner reported; falls when a learner restarts from an older
  // checkpoint.
  std::int64_t learner_updates() const { return learner_updates_; }

  RunStatus status(double now) const;
  // Global values under their plain names; per role "<role>/<gauge>" (mean over its nodes),
  // "<role>/<counter>_per_second" (sum) and for times "<role>/<what>_share" (mean, 0 to 1).
  MetricsRow row(double now, double unix_time) const;

 private:
  struct Node {
    NodeStatus status;
    NodeReport last;
    std::map<std::string, RateWindow> rates;
    bool removed = false;  // hidden, but a report of it still under way must not count from 0 again
  };
  struct Total {
    double value = 0;
    RateWindow rate;
  };
  void add_to_total(const std::string& name, double increase, double now);
  double total_rate(const std::string& name, double now) const;
  double samples_per_insert(double now) const;
  double policy_lag() const;
  double eta(double now) const;
  double elapsed(double now) const;
  std::vector<Wait> waits(double now) const;
  double node_rate(const Node& node, double now) const;

  HubOptions options_;
  double start_;
  std::string state_ = "starting", reason_;
  std::map<std::string, Node> nodes_;
  std::map<std::string, Total> totals_;  // of counters that sum over nodes and incarnations
  RateWindow update_rate_;
  std::int64_t learner_updates_;
  std::deque<double> recent_returns_;
  std::int64_t episodes_ = 0;
  double evaluation_return_ = kUnknown;
  std::int64_t evaluation_steps_ = 0;
  Metrics counts_;
};

}  // namespace troupe::actors::telemetry
