// Every struct that crosses the control plane between nodes, grouped by who talks to whom, and the
// one type-id block that registers them. Integers, strings and bytes only: CAF 0.17 corrupts floats
// on the wire, so numbers that may be fractional travel inside JSON text. Plain values.
#pragma once

#include <caf/allowed_unsafe_message_type.hpp>
#include <caf/meta/type_name.hpp>
#include <caf/type_id.hpp>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "actors/runtime/system.hpp"

namespace troupe::actors {

// Refuses at compile time what CAF 0.17 cannot carry safely.
template <class... Ts>
constexpr bool kWireSafe = ((!std::is_floating_point_v<Ts> &&
                             !std::is_same_v<Ts, std::vector<float>> &&
                             !std::is_same_v<Ts, std::vector<double>>)&&...);

template <class Inspector, class... Ts>
typename Inspector::result_type inspect_fields(Inspector& inspector, const char* name,
                                               Ts&... fields) {
  static_assert(kWireSafe<std::remove_const_t<Ts>...>,
                "floats do not survive CAF 0.17's wire format");
  return inspector(caf::meta::type_name(name), fields...);
}

// ---- node -> coordinator
// ---------------------------------------------------------------------------

// First message of a node: who it is and which build it runs.
struct Hello {
  std::string node;               // name the coordinator gave it, e.g. "actor-0"
  std::uint32_t incarnation = 0;  // of that name
  std::int32_t protocol = kProtocolVersion;
  std::uint64_t run_id = 0;
  std::int64_t pid = 0;
};

// A role serves: where its data channels listen, and from which state it starts.
struct RoleReady {
  std::string node;
  std::uint32_t incarnation = 0;
  std::uint32_t first_shard = 0;            // of the shards this role serves, if any
  std::vector<std::string> data_endpoints;  // one per shard served: segments come here
  std::vector<std::string>
      sample_endpoints;            // one per shard of its own process: batches leave here
  std::string parameter_endpoint;  // learner: parameter sets leave here; else empty
  std::string update_endpoint;     // parameter server: updates come here; else empty
  std::string state_json;          // restored counters: {"inserted_steps":[1200],"version":30}
};

// Counters, gauges and what the role waits for, as a JSON object (telemetry::NodeReport).
struct Report {
  std::string node;
  std::uint32_t incarnation = 0;
  std::string json;
};

// Answer to Ping. `busy_ms`: how long the role has been inside one call (a step, an update).
struct Pong {
  std::string node;
  std::uint32_t incarnation = 0;
  std::uint64_t number = 0;
  std::uint64_t busy_ms = 0;
  std::string busy_with;
};

// A file that stands complete under its final name.
struct FilePart {
  std::string path;  // relative to the checkpoint's directory
  std::uint64_t bytes = 0;
  std::uint32_t crc32c = 0;
};

// A node's whole part of a checkpoint. `error` is empty on success.
struct PartWritten {
  std::string node;
  std::uint32_t incarnation = 0;
  std::uint64_t checkpoint = 0;
  std::vector<FilePart> files;
  std::string state_json;  // counters at the cut
  std::string error;
};

// Returns of one evaluation, JSON: {"returns":[...],"lengths":[...]}. Of a classifier its top-1
// accuracy is the one return, how many pictures its length; "report" is what
// actors/roles/classification_report.hpp says, "text" one line of it.
struct EvaluationDone {
  std::string node;
  std::uint64_t evaluation = 0;
  std::uint64_t actor_steps = 0;
  std::uint64_t version = 0;
  std::string json;
  std::string error;
};

// One finished training episode; a role reports at most 20 a second.
struct EpisodeDone {
  std::string node;
  std::uint64_t environment = 0;
  std::uint64_t return_bits = 0;  // std::bit_cast of a double
  std::uint64_t length = 0;
  std::uint64_t version = 0;
};

// Something worth telling a person, counted by kind.
struct Event {
  std::string node;
  std::string level;  // "info" | "warning" | "error"
  std::string kind;   // e.g. "invalid_episode"
  std::string text;
};

// The role ended: orderly (empty error) or not.
struct RoleEnded {
  std::string node;
  std::uint32_t incarnation = 0;
  std::string error;
  bool permanent = false;  // it would fail again: a wrong configuration, a damaged file
};

// A learner of several is ready to train, or its group has failed it: it wants to be in the next.
struct GroupWanted {
  std::string node;
  std::uint32_t incarnation = 0;
  std::uint32_t generation = 0;  // of the last group that it was told of; 0: none
  std::string reason;            // why that one is over; empty: it was in none
};

// A question to the rendezvous of a group's newest generation, and its answer
// (learners/collectives/ rendezvous.hpp has their form).
struct RendezvousRequest {
  std::uint32_t group = 0, generation = 0;
  std::vector<std::uint8_t> bytes;
};
struct RendezvousAnswer {
  std::vector<std::uint8_t> bytes;
};

// ---- coordinator -> node
// ---------------------------------------------------------------------------

// What a node is to do. `config` is the whole resolved configuration as YAML.
struct Assignment {
  // "environment" | "data" | "learner" | "parameter_server" | "shard" | "evaluator"
  std::string role;
  std::uint32_t index = 0;
  std::uint32_t incarnation = 0;
  std::uint32_t epoch = 0;  // of the learner, parameter server or shard
  std::string config;
  std::string run_directory;
  std::string socket_directory;   // for ipc endpoints
  std::string restore_directory;  // complete checkpoint to start from; empty: from nothing
};

// Where the data channels are now; sent again whenever one moves.
struct Peers {
  std::vector<std::string> shard_endpoints;  // empty string: not there now
  std::vector<std::string>
      sample_endpoints;  // likewise; empty strings when shards live with the learner
  std::string parameter_endpoint;
  std::vector<std::string> update_endpoints;  // of parameter servers; likewise
  // Of asynchronous learners: the node that counts for the run, and a number that grows whenever
  // that is another one or a parameter server comes back with fewer updates.
  std::string leader;
  std::uint32_t lead = 0;
  // Highest incarnation of each data actor that is over, 0: none; by index.
  std::vector<std::uint32_t> ended_actors;
  // Shards that take no new steps, because they leave, and those that have left for good: whatever
  // they did not acknowledge goes to others.
  std::vector<std::uint32_t> leaving_shards, gone_shards;
  bool operator==(const Peers&) const = default;
};

// Steps that each shard may have inserted in all, so that a run ends at stop.actor_steps.
struct StepLimits {
  std::vector<std::uint64_t> inserted;  // by shard
};

struct Ping {
  std::uint64_t number = 0;
};

// Write your parts into `directory` and report each with PartWritten.
struct CheckpointRequest {
  std::uint64_t checkpoint = 0;
  std::string directory;
};

// Run the evaluation's episodes with the newest parameters, at least `version`.
struct EvaluateRequest {
  std::uint64_t evaluation = 0;
  std::uint64_t actor_steps = 0;
  std::uint64_t version = 0;
};

// Leave the present group of learners and train with this one; rank 0 leads it. `group`: which of
// those that are asynchronous to each other.
struct GroupFormed {
  std::uint32_t group = 0, generation = 0;
  std::uint32_t rank = 0, size = 0;
};

// Stop stepping and flush (true), or go on.
struct Pause {
  bool paused = false;
};

// Begin nothing new, finish what is under way, then end in order. The node does not come back.
struct Drain {
  std::string reason;
};

// End in order; the process exits afterwards.
struct Shutdown {
  std::string reason;
};

// ---- environment actor -> learner, by way of the coordinator
// -----------------------------------------

// Observation statistics since the last one (models::RunningStatistics::encode).
struct NormaliserDelta {
  bool upwards = false;  // still on its way to the coordinator
  std::vector<std::uint8_t> bytes;
};

// ---- inside one process
// ------------------------------------------------------------------------------

// Coordinator -> telemetry hub: how a node stands.
struct NodeState {
  std::string node, role, state;
  std::int64_t pid = 0;
  bool gone = false;  // has left for good: leaves the table of nodes
};

// Coordinator -> telemetry hub: how the run stands; "finished", "failed" and "interrupted" are
// final.
struct RunPhase {
  std::string state, reason;
  std::uint64_t actor_steps = 0, version = 0;
};

// ---- control -> coordinator
// --------------------------------------------------------------------------

// What a user asks of a run, from its own process or from another one. `secret`: of the run, which
// only its user can read; a node does not have it. `verb`, with `arguments` as a JSON object:
//   "status" {}                                              answered with JSON
//   "stop"   {"now": bool, "reason": text}                   ends the run; now: without a
//   checkpoint "scale"  {"actors": n, "learners": n, "shards": n}       any of them; all are done,
//   or none "drain"  {"node": name}                                  that node ends in order, for
//   good
struct ControlRequest {
  std::string secret, verb, arguments;
};

// `done`: `text` says what is done, or else why it is not.
struct ControlAnswer {
  bool done = false;
  std::string text;
};

// clang-format off
template <class I> typename I::result_type inspect(I& f, ControlRequest& x) {
  return inspect_fields(f, "ControlRequest", x.secret, x.verb, x.arguments); }
template <class I> typename I::result_type inspect(I& f, ControlAnswer& x) {
  return inspect_fields(f, "ControlAnswer", x.done, x.text); }
template <class I> typename I::result_type inspect(I& f, Hello& x) {
  return inspect_fields(f, "Hello", x.node, x.incarnation, x.protocol, x.run_id, x.pid); }
template <class I> typename I::result_type inspect(I& f, RoleReady& x) {
  return inspect_fields(f, "RoleReady", x.node, x.incarnation, x.first_shard, x.data_endpoints, x.sample_endpoints, x.parameter_endpoint, x.update_endpoint, x.state_json); }
template <class I> typename I::result_type inspect(I& f, Report& x) {
  return inspect_fields(f, "Report", x.node, x.incarnation, x.json); }
template <class I> typename I::result_type inspect(I& f, Pong& x) {
  return inspect_fields(f, "Pong", x.node, x.incarnation, x.number, x.busy_ms, x.busy_with); }
template <class I> typename I::result_type inspect(I& f, FilePart& x) {
  return inspect_fields(f, "FilePart", x.path, x.bytes, x.crc32c); }
template <class I> typename I::result_type inspect(I& f, PartWritten& x) {
  return inspect_fields(f, "PartWritten", x.node, x.incarnation, x.checkpoint, x.files, x.state_json, x.error); }
template <class I> typename I::result_type inspect(I& f, EvaluationDone& x) {
  return inspect_fields(f, "EvaluationDone", x.node, x.evaluation, x.actor_steps, x.version, x.json, x.error); }
template <class I> typename I::result_type inspect(I& f, EpisodeDone& x) {
  return inspect_fields(f, "EpisodeDone", x.node, x.environment, x.return_bits, x.length, x.version); }
template <class I> typename I::result_type inspect(I& f, Event& x) {
  return inspect_fields(f, "Event", x.node, x.level, x.kind, x.text); }
template <class I> typename I::result_type inspect(I& f, RoleEnded& x) {
  return inspect_fields(f, "RoleEnded", x.node, x.incarnation, x.error, x.permanent); }
template <class I> typename I::result_type inspect(I& f, Assignment& x) {
  return inspect_fields(f, "Assignment", x.role, x.index, x.incarnation, x.epoch, x.config, x.run_directory, x.socket_directory, x.restore_directory); }
template <class I> typename I::result_type inspect(I& f, Peers& x) {
  return inspect_fields(f, "Peers", x.shard_endpoints, x.sample_endpoints, x.parameter_endpoint, x.update_endpoints, x.leader, x.lead, x.ended_actors, x.leaving_shards, x.gone_shards); }
template <class I> typename I::result_type inspect(I& f, StepLimits& x) { return inspect_fields(f, "StepLimits", x.inserted); }
template <class I> typename I::result_type inspect(I& f, Ping& x) { return inspect_fields(f, "Ping", x.number); }
template <class I> typename I::result_type inspect(I& f, CheckpointRequest& x) {
  return inspect_fields(f, "CheckpointRequest", x.checkpoint, x.directory); }
template <class I> typename I::result_type inspect(I& f, EvaluateRequest& x) {
  return inspect_fields(f, "EvaluateRequest", x.evaluation, x.actor_steps, x.version); }
template <class I> typename I::result_type inspect(I& f, GroupWanted& x) {
  return inspect_fields(f, "GroupWanted", x.node, x.incarnation, x.generation, x.reason); }
template <class I> typename I::result_type inspect(I& f, RendezvousRequest& x) {
  return inspect_fields(f, "RendezvousRequest", x.group, x.generation, x.bytes); }
template <class I> typename I::result_type inspect(I& f, RendezvousAnswer& x) {
  return inspect_fields(f, "RendezvousAnswer", x.bytes); }
template <class I> typename I::result_type inspect(I& f, GroupFormed& x) {
  return inspect_fields(f, "GroupFormed", x.group, x.generation, x.rank, x.size); }
template <class I> typename I::result_type inspect(I& f, Pause& x) { return inspect_fields(f, "Pause", x.paused); }
template <class I> typename I::result_type inspect(I& f, Drain& x) { return inspect_fields(f, "Drain", x.reason); }
template <class I> typename I::result_type inspect(I& f, Shutdown& x) { return inspect_fields(f, "Shutdown", x.reason); }
template <class I> typename I::result_type inspect(I& f, NormaliserDelta& x) {
  return inspect_fields(f, "NormaliserDelta", x.upwards, x.bytes); }
template <class I> typename I::result_type inspect(I& f, NodeState& x) {
  return inspect_fields(f, "NodeState", x.node, x.role, x.state, x.pid, x.gone); }
template <class I> typename I::result_type inspect(I& f, RunPhase& x) {
  return inspect_fields(f, "RunPhase", x.state, x.reason, x.actor_steps, x.version); }
// clang-format on

}  // namespace troupe::actors

CAF_BEGIN_TYPE_ID_BLOCK(troupe, first_custom_type_id)

CAF_ADD_TYPE_ID(troupe, (troupe::actors::Hello))
CAF_ADD_TYPE_ID(troupe, (troupe::actors::RoleReady))
CAF_ADD_TYPE_ID(troupe, (troupe::actors::Report))
CAF_ADD_TYPE_ID(troupe, (troupe::actors::Pong))
CAF_ADD_TYPE_ID(troupe, (troupe::actors::FilePart))
CAF_ADD_TYPE_ID(troupe, (std::vector<troupe::actors::FilePart>))
CAF_ADD_TYPE_ID(troupe, (troupe::actors::PartWritten))
CAF_ADD_TYPE_ID(troupe, (troupe::actors::EvaluationDone))
CAF_ADD_TYPE_ID(troupe, (troupe::actors::EpisodeDone))
CAF_ADD_TYPE_ID(troupe, (troupe::actors::Event))
CAF_ADD_TYPE_ID(troupe, (troupe::actors::RoleEnded))
CAF_ADD_TYPE_ID(troupe, (troupe::actors::Assignment))
CAF_ADD_TYPE_ID(troupe, (troupe::actors::Peers))
CAF_ADD_TYPE_ID(troupe, (troupe::actors::StepLimits))
CAF_ADD_TYPE_ID(troupe, (troupe::actors::Ping))
CAF_ADD_TYPE_ID(troupe, (troupe::actors::CheckpointRequest))
CAF_ADD_TYPE_ID(troupe, (troupe::actors::EvaluateRequest))
CAF_ADD_TYPE_ID(troupe, (troupe::actors::Pause))
CAF_ADD_TYPE_ID(troupe, (troupe::actors::Drain))
CAF_ADD_TYPE_ID(troupe, (troupe::actors::Shutdown))
CAF_ADD_TYPE_ID(troupe, (troupe::actors::NormaliserDelta))
CAF_ADD_TYPE_ID(troupe, (troupe::actors::NodeState))
CAF_ADD_TYPE_ID(troupe, (troupe::actors::RunPhase))
CAF_ADD_TYPE_ID(troupe, (troupe::actors::ControlRequest))
CAF_ADD_TYPE_ID(troupe, (troupe::actors::ControlAnswer))
CAF_ADD_TYPE_ID(troupe, (troupe::actors::GroupWanted))
CAF_ADD_TYPE_ID(troupe, (troupe::actors::GroupFormed))
CAF_ADD_TYPE_ID(troupe, (troupe::actors::RendezvousRequest))
CAF_ADD_TYPE_ID(troupe, (troupe::actors::RendezvousAnswer))

CAF_ADD_ATOM(troupe, troupe::actors, work_atom, "work")
CAF_ADD_ATOM(troupe, troupe::actors, beat_atom, "beat")

CAF_END_TYPE_ID_BLOCK(troupe)
