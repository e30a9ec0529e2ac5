// What the coordinator's actor consists of, shared by the files that implement it. Belongs to that
// actor's thread.
#pragma once

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "actors/roles/coordinator.hpp"
#include "actors/roles/node_host.hpp"
#include "actors/roles/standstill.hpp"

namespace troupe::actors {

// What a node last said of itself.
struct Condition {
  std::string waiting_on, busy_with;
  std::uint64_t busy_ms = 0;
};

struct CoordinatorState {
  std::shared_ptr<CoordinatorSetup> setup;
  std::optional<RunState> run;
  std::optional<StandstillWatch> watch;
  std::map<std::string, Condition> conditions;
  std::unique_ptr<NodeHost> host;
  std::map<std::string, NodeActor> nodes;                  // joined
  std::map<std::string, std::uint32_t> first_incarnation;  // of this session
  std::map<std::string, std::filesystem::path> checkpoint_directories;
  std::map<std::string, std::chrono::steady_clock::time_point>
      forwarded;                             // last report passed to the hub
  std::map<std::string, std::string> shown;  // node states told to the hub
  Peers peers;
  bool over = false;
  static inline const char* name = "coordinator";
};

using CoordinatorSelf = CoordinatorActor::stateful_pointer<CoordinatorState>;

// A line for the log and the watchers.
void tell(CoordinatorSelf self, const Tell& line);
// Room for the shards that the run has now.
void resize_peers(CoordinatorSelf self);

// What comes from nodes; coordinator_input.cpp.
caf::result<Assignment> on_hello(CoordinatorSelf self, const Hello& hello,
                                 const caf::strong_actor_ptr& peer);
void on_ready(CoordinatorSelf self, const RoleReady& ready);
void on_report(CoordinatorSelf self, const Report& report);
void on_evaluation(CoordinatorSelf self, const EvaluationDone& done);
void on_part(CoordinatorSelf self, const PartWritten& part);
// What a node served is gone with it.
void withdraw(CoordinatorSelf self, const std::string& node, std::uint32_t incarnation);

}  // namespace troupe::actors
