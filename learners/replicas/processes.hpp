// How the processes of one replicated computation reach each other.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "learners/collective.hpp"
#include "learners/collectives/exchange.hpp"
#include "learners/collectives/rendezvous.hpp"
#include "learners/parameter_servers/regime.hpp"
#include "learners/replicas/options.hpp"

namespace troupe::learners {

// Plain value; what the pointers and functions refer to outlives the Replicator.
struct Processes {
  int index = 0, count = 1;
  // Of this process: higher than that of whoever had the index before it.
  std::uint32_t incarnation = 0;
  // Needed when there are several, but for `links`. Every computation, and every generation of one,
  // has keys of its own: `name` is in front of them.
  std::shared_ptr<RequestLink> rendezvous{};
  std::string name = "replicas";
  // For options.transport "links": connects the exchange called `group`, with this process as
  // `rank` of `size`.
  std::function<Result<std::unique_ptr<Exchange>>(const std::string& group, int rank, int size)>
      links{};
  // For parameter servers: the way to each. None: they live in this, the only, process.
  ParameterServices parameter_services{};
};

// The exchange `group` of some of the processes, over the transport that the options name.
Result<std::unique_ptr<Exchange>> connect(const Processes& processes,
                                          const ReplicationOptions& options,
                                          const std::string& group, int rank, int size);

}  // namespace troupe::learners
