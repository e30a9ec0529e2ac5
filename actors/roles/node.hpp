// The well-known actor of a node: holds the link to the coordinator, starts the role it is
// assigned, and passes messages between the two. Event-based: always answers, whatever its role is
// busy with.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "actors/roles/role_context.hpp"

namespace troupe::actors {

struct NodeOptions {
  std::string name;
  std::uint32_t incarnation = 0;
  std::uint64_t run_id = 0;
  // Where the coordinator is: its handle when it lives in this process, else its address.
  CoordinatorActor coordinator;
  std::string host;
  std::uint16_t port = 0;
  // Called once, on the actor's thread, when the node is over; empty error: in order. `permanent`:
  // it would fail the same way again.
  std::function<void(const std::string& error, bool permanent)> on_end;
  // Makes the role that the node is assigned.
  std::function<Result<RoleActor>(caf::actor_system&, RoleContext)> make_role = spawn_role;
};

NodeActor spawn_node(caf::actor_system& system, NodeOptions options);

}  // namespace troupe::actors
