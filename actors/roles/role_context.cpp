// The registry of roles, and where a role's channels listen.
#include "actors/roles/role_context.hpp"

#include "actors/config/checks.hpp"

namespace troupe::actors {

std::string RoleContext::channel_endpoint(const std::string& purpose) const {
  // The incarnation is part of the address: a client never talks to a dead predecessor's queue.
  const std::string name = peer_name() + "." + purpose;
  if (in_process) return "inproc://" + assignment.socket_directory + "/" + name;
  if (options.transport == "tcp") return "tcp://127.0.0.1:*";
  return "ipc://" + assignment.socket_directory + "/" + name;
}

Result<RoleActor> spawn_role(caf::actor_system& system, RoleContext context) {
  const std::string role = context.assignment.role;
  if (role == "environment") return spawn_environment_role(system, std::move(context));
  if (role == "data") return spawn_data_role(system, std::move(context));
  if (role == "learner" && learns_from_pictures(context.options))
    return spawn_picture_learner_role(system, std::move(context));
  if (role == "learner") return spawn_learner_role(system, std::move(context));
  if (role == "parameter_server") return spawn_parameter_server_role(system, std::move(context));
  if (role == "shard") return spawn_shard_role(system, std::move(context));
  if (role == "evaluator") return spawn_evaluator_role(system, std::move(context));
  return fail(ErrorCode::kNotFound, "this program knows no role '" + role + "'");
}

}  // namespace troupe::actors
