// The coordinator: executes what RunState decides, with processes, checkpoints and messages.
// Event-based; one per run, in the process of `troupe run`.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "actors/config/run_options.hpp"
#include "actors/messages/interfaces.hpp"
#include "actors/roles/checkpoint_store.hpp"
#include "actors/roles/run_state.hpp"

namespace troupe::actors {

struct CoordinatorSetup {
  RunOptions options;
  std::string config;  // of `options`, as YAML
  std::uint64_t run_id = 0;
  std::filesystem::path run_directory, socket_directory;
  std::unique_ptr<CheckpointStore> store;  // newest() is what nodes restore
  RunCounters counters;
  HubActor hub;
  std::string secret;                      // of those who may control the run
  std::atomic<std::uint16_t> port{0};      // where nodes connect; set before the first beat
  std::atomic<std::uint64_t> messages{0};  // that nodes sent it
  // Called once when every node is gone.
  std::function<void(int exit_code, const std::string& text)> on_over;
};

// Waits for its first beat_atom before it starts nodes.
CoordinatorActor spawn_coordinator(caf::actor_system& system,
                                   std::shared_ptr<CoordinatorSetup> setup);

// RunCounters and the ledger in a checkpoint's state.json.
std::string counters_json(const RunState& state, RunState::Time now);
Result<RunCounters> counters_from_json(const std::string& json);

}  // namespace troupe::actors
