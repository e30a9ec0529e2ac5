// The two ways to drive a prepared run, and what they share. One caller: run_main.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "actors/control/run_listing.hpp"
#include "actors/jobs/run_directory.hpp"
#include "actors/roles/checkpoint_store.hpp"
#include "actors/roles/cluster_security.hpp"
#include "actors/roles/hub.hpp"
#include "actors/roles/run_state.hpp"

namespace troupe::actors {

// What a run needs before any actor exists.
struct Prepared {
  RunDirectory directory;
  SocketDirectory sockets;
  std::unique_ptr<CheckpointStore> store;  // newest() is what is restored
  RunCounters counters;
  std::shared_ptr<HubSetup> hub;
  std::optional<RunListing> listing;  // while it can be controlled from outside
  ClusterSecurity security;
};

// `run_id` names this start of the run.
RunOutcome drive_topology(Prepared& prepared, std::uint64_t run_id);
RunOutcome drive_deterministic(Prepared& prepared, std::uint64_t run_id);

// Tells the hub how the run ended, waits until files and messages are out, and says on stderr why
// it failed, if it did.
RunOutcome end_telemetry(caf::actor_system& system, const HubActor& hub, int code,
                         const std::string& text);
// One that could not begin; says why on stderr.
RunOutcome failed_outcome(const Error& error);

}  // namespace troupe::actors
