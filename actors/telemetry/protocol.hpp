// The telemetry protocol: what a run tells whoever watches it. Two ZeroMQ frames per message: the
// topic
// "<kind>/<node>" and one JSON object (UTF-8):
//
//   {"v": 1, "kind": "metrics", "run": "cartpole-1", "session": 1760000000123456, "node":
//   "learner-0",
//    "seq": 17, "time": 1760000042.5, "actor_steps": 31200, "learner_updates": 7100, "payload":
//    {...}}
//
// v        protocol version; a reader refuses a newer one and ignores keys it does not know
// session  grows with every start of the publisher; `seq` counts from 1 per session and kind, so a
// jump
//          is a loss and a new session is not
// time     Unix seconds, of the hub's clock
// A number that JSON lacks is written as the string "nan", "inf" or "-inf". Plain values; no thread
// rule.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "envs/spec/result.hpp"

namespace troupe::actors::telemetry {

inline constexpr int kProtocolVersion = 1;
inline constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

enum class Kind : std::uint8_t { kMetrics, kEvents, kEpisodes, kEvaluations, kStatus };
inline constexpr std::size_t kKinds = 5;

// "metrics", "events", "episodes", "evaluations", "status".
std::string_view kind_name(Kind kind);
// The kind before the first '/' of a topic; nullopt for one this version does not know.
std::optional<Kind> kind_of_topic(std::string_view topic);

// metrics/<node>: one object of numbers, names as the reporting role documents them.
using Metrics = std::map<std::string, double>;

// events/<node>: something happened that a person may want to read.
struct Event {
  std::string severity = "info";  // "info" | "warning" | "error"
  std::string text{};             // one sentence
};

// episodes/<node>: one finished training episode (exploration included).
struct Episode {
  double episode_return = 0;  // undiscounted; "return" in JSON
  std::int64_t length = 0;    // control steps
  std::int64_t environment = 0;
  std::uint64_t policy_version = 0;
};

// evaluations/<node>: episodes of the deterministic policy. The envelope's actor_steps and
// learner_updates are those of the evaluated policy, not of the moment of publishing.
struct Evaluation {
  std::vector<double> returns{};
  std::vector<std::int64_t> lengths{};  // one per return
};
double mean(const std::vector<double>& values);  // NaN when empty

struct NodeStatus {
  std::string node{};
  std::string role{};   // "environment_actor", "replay_shard", "learner", …
  std::string state{};  // "starting" | "running" | "silent" | "lost" | …
  std::int64_t pid = 0;
  double rate = kUnknown;    // of the node's own work: control steps/s, updates/s or items/s
  std::string waiting_on{};  // empty: nothing
};

// One role and what it loses most time to. `share` is the mean part of wall time, 0 to 1; NaN when
// no counter says so.
struct Wait {
  std::string role{};
  std::string on{};
  double share = kUnknown;
};

// status/<node>: the run at a glance; all a progress line or a dashboard's header needs. Durations
// in seconds, rates per second; NaN is "not known yet".
struct RunStatus {
  std::string state =
      "starting";        // starting | running | stopping | finished | failed | interrupted
  std::string reason{};  // of the end, one sentence
  std::string job{}, task{};
  std::int64_t pid = 0;   // of the publishing process
  double elapsed = 0;     // earlier sessions of the run included
  double eta = kUnknown;  // until the first stop condition that can be foreseen
  std::int64_t target_actor_steps = 0, target_updates = 0;  // 0: no such stop condition
  double steps_per_second = kUnknown, updates_per_second = kUnknown;
  double samples_per_insert = kUnknown;             // over the last seconds
  double samples_per_insert_configured = kUnknown;  // NaN: no ratio is kept
  double policy_lag = kUnknown;                     // updates
  double evaluation_return = kUnknown;              // mean of the last evaluation
  std::int64_t evaluation_steps = 0;                // its actor steps
  double recent_return = kUnknown;                  // mean over the last training episodes
  std::int64_t episodes = 0;
  Metrics losses{};
  Metrics counts{};  // faults and losses by name, for instance "telemetry_unsent"
  std::vector<Wait> waits{};
  std::vector<NodeStatus> nodes{};
  std::string endpoint{}, snapshot_endpoint{};  // filled in by the publisher
};
// No more messages follow one that says so.
bool is_final(const RunStatus& status);

struct Message {
  std::string run, node;
  std::uint64_t session = 0, sequence = 0;  // stamped by the publisher
  double time = 0;                          // stamped by the publisher when 0
  std::int64_t actor_steps = 0, learner_updates = 0;
  std::variant<Metrics, Event, Episode, Evaluation, RunStatus> payload;  // in the order of Kind

  Kind kind() const { return static_cast<Kind>(payload.index()); }
  std::string topic() const { return std::string(kind_name(kind())) + "/" + node; }
};

// JSON text on one line. Invalid UTF-8 in a string becomes U+FFFD.
std::string encode(const Message& message);
// kCorrupt: not JSON, a field missing or of the wrong type, an unknown kind, or a newer version;
// the message names the field.
Result<Message> decode(std::string_view text);

// What a late joiner gets: the last message of every node and kind, and recent history, oldest
// first.
struct Snapshot {
  std::string run;
  std::uint64_t session = 0;
  std::array<std::uint64_t, kKinds> sequences{};  // last published, per kind; 0: none yet
  std::vector<Message> metrics;                   // the last of each node
  std::vector<Message> events, episodes, evaluations;
  std::optional<Message> status;
};
Result<Snapshot> decode_snapshot(std::string_view text);

// Seconds since 1970 by this host's clock.
double wall_time();

}  // namespace troupe::actors::telemetry
