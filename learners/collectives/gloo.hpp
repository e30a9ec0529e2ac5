// The exchange over c10d's Gloo process group: TCP between processes, in the clear, so across hosts
// only where the network is trusted.
#pragma once

#include <memory>
#include <string>

#include "learners/collectives/exchange.hpp"
#include "learners/collectives/rendezvous.hpp"

namespace troupe::learners {

struct GlooOptions {
  std::string address = "127.0.0.1";  // this process listens there, on any free port
  std::chrono::milliseconds timeout{120'000};
};

// Waits until all `size` ranks are there. `rendezvous` carries addresses and the reasons of ranks
// that leave; its keys are used by this group alone. kUnavailable, kTimeout: not all came.
Result<std::unique_ptr<Exchange>> make_gloo_exchange(std::shared_ptr<RendezvousClient> rendezvous,
                                                     int rank, int size,
                                                     const GlooOptions& options = {});

}  // namespace troupe::learners
