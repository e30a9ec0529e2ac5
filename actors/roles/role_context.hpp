// What every role actor is given, and the factory that makes the actor of a role. The factory may
// be called from any actor; each role actor has a thread of its own.
#pragma once

#include <memory>
#include <string>

#include "actors/config/run_options.hpp"
#include "actors/messages/interfaces.hpp"
#include "actors/roles/role_board.hpp"

namespace troupe::actors {

struct RoleContext {
  std::string node;  // "actor-0"
  Assignment assignment;
  RunOptions options;
  std::shared_ptr<RoleBoard> board;
  NodeActor parent;         // reports go there
  bool in_process = false;  // all roles share one process: inproc channels

  // Unique per server and incarnation: "actor-0.3".
  std::string peer_name() const { return node + "." + std::to_string(assignment.incarnation); }
  // Where a channel of this incarnation listens, by the options' transport.
  std::string channel_endpoint(const std::string& purpose) const;
};

// Errors name an unknown role.
Result<RoleActor> spawn_role(caf::actor_system& system, RoleContext context);

// One function per role, and one for each kind of learner.
RoleActor spawn_environment_role(caf::actor_system& system, RoleContext context);
RoleActor spawn_data_role(caf::actor_system& system, RoleContext context);
RoleActor spawn_picture_learner_role(caf::actor_system& system, RoleContext context);
RoleActor spawn_parameter_server_role(caf::actor_system& system, RoleContext context);
RoleActor spawn_shard_role(caf::actor_system& system, RoleContext context);
RoleActor spawn_learner_role(caf::actor_system& system, RoleContext context);
RoleActor spawn_evaluator_role(caf::actor_system& system, RoleContext context);

}  // namespace troupe::actors
