// Where the coordinator's nodes live: child processes, or actors of this process. Belongs to the
// coordinator.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "actors/messages/interfaces.hpp"

namespace troupe::actors {

struct CoordinatorSetup;

class NodeHost {
 public:
  struct Ended {
    std::string node;
    std::uint32_t incarnation = 0;
    std::string reason;      // empty: in order
    bool permanent = false;  // no restart would help
  };
  virtual ~NodeHost() = default;

  virtual Result<void> start(const std::string& node, std::uint32_t incarnation) = 0;
  // At once, without asking. Its end comes out of take_ended.
  virtual void kill(const std::string& node) = 0;
  // The node said why it ends; its end itself follows.
  virtual void note_end(const RoleEnded& said) = 0;
  // Nodes that ended since the last call, each incarnation once.
  virtual std::vector<Ended> take_ended() = 0;
  virtual std::int64_t pid_of(const std::string& node) const = 0;
  // The host that it runs on.
  virtual std::string host_of(const std::string& node) const;
};

// By options.processes.
std::unique_ptr<NodeHost> make_node_host(caf::actor_system& system, const CoordinatorSetup& setup,
                                         const CoordinatorActor& coordinator);

}  // namespace troupe::actors
