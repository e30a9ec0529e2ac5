// What the coordinator's actor consists of, shared by the files that implement it. Belongs to that
// actor's thread.
#pragma once

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "actors/roles/actor_scaling.hpp"
#include "actors/roles/coordinator.hpp"
#include "actors/roles/learner_groups.hpp"
#include "actors/roles/node_host.hpp"
#include "actors/roles/standstill.hpp"
#include "learners/collectives/rendezvous.hpp"

namespace troupe::actors {

// What a node last said of itself.
struct Condition {
  std::string waiting_on, busy_with;
  std::uint64_t busy_ms = 0;
  std::optional<std::uint64_t> version;  // of its parameters
  // In all, in this life: an actor's waits for leave to insert, a learner's for samples.
  double insert_blocked_ms = 0, sample_blocked_ms = 0;
};

struct CoordinatorState {
  std::shared_ptr<CoordinatorSetup> setup;
  std::optional<RunState> run;
  std::optional<StandstillWatch> watch;
  std::optional<ActorScaling> scaling;  // where the run scales itself
  std::chrono::steady_clock::time_point scaling_looked{};
  std::map<std::string, Condition> conditions;
  std::unique_ptr<NodeHost> host;
  std::map<std::string, NodeActor> nodes;                  // joined
  std::map<std::string, std::uint32_t> first_incarnation;  // of this session
  std::map<std::string, std::chrono::steady_clock::time_point>
      forwarded;                                         // last report passed to the hub
  std::map<std::string, std::string> shown;              // node states told to the hub
  Peers peers, told_peers;                               // as they are; as all were last told
  std::map<std::string, std::string> learner_endpoints;  // of parameters, by node
  std::map<std::string, std::string> picture_endpoints;  // where learners take pictures, likewise
  std::optional<LearnerGroups> groups;                   // of learners that train in groups
  // Of each group's present generation.
  std::vector<std::shared_ptr<learners::RendezvousTable>> rendezvous;
  bool over = false;
  static inline const char* name = "coordinator";
};

using CoordinatorSelf = CoordinatorActor::stateful_pointer<CoordinatorState>;

// Carries out what the run has decided.
void settle(CoordinatorSelf self);
// More or fewer actors, where the run scales itself; coordinator_control.cpp.
void scale_by_load(CoordinatorSelf self);
// A line for the log and the watchers.
void tell(CoordinatorSelf self, const Tell& line);
// Room for the shards that the run has now.
void resize_peers(CoordinatorSelf self);
// The groups of its learners, if they train in any.
void begin_groups(CoordinatorSelf self);

// What comes from nodes; coordinator_input.cpp, and coordinator_learners.cpp for what concerns the
// groups of learners and their parameter servers.
caf::result<Assignment> on_hello(CoordinatorSelf self, const Hello& hello,
                                 const caf::strong_actor_ptr& peer);
void on_ready(CoordinatorSelf self, const RoleReady& ready);
void on_report(CoordinatorSelf self, const Report& report);
void on_evaluation(CoordinatorSelf self, const EvaluationDone& done);
void on_part(CoordinatorSelf self, const PartWritten& part);
// Control from outside; coordinator_control.cpp.
ControlAnswer on_control(CoordinatorSelf self, const ControlRequest& request);
void on_group_wanted(CoordinatorSelf self, const GroupWanted& wanted);
// Forms the next groups of learners where there are some to form.
void form_groups(CoordinatorSelf self);
// Of a report: what parameter servers say of themselves; throws what JSON does.
void take_server_report(CoordinatorSelf self, const nlohmann::json& counters,
                        const nlohmann::json& gauges);
// To every node, if they have changed since.
void broadcast_peers(CoordinatorSelf self);
// The learner that counts for the run, and where it serves its parameters and takes pictures.
void lead(CoordinatorSelf self);
// The others of its group go on without it; false: it is no learner of a group.
bool leave_group(CoordinatorSelf self, const std::string& learner);
// What a node served is gone with it. Before RunState::node_ended.
void withdraw(CoordinatorSelf self, const std::string& node, std::uint32_t incarnation);

}  // namespace troupe::actors
