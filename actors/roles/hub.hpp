// The telemetry hub as an actor: merges reports, publishes them over ZeroMQ, writes the run's files
// and the console. Detached; in the coordinator's process.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>

#include "actors/messages/interfaces.hpp"
#include "actors/telemetry/hub.hpp"
#include "actors/telemetry/publisher.hpp"
#include "actors/telemetry/run_files.hpp"

namespace troupe::actors {

struct HubSetup {
  telemetry::HubOptions options;
  std::unique_ptr<telemetry::Publisher> publisher;
  std::unique_ptr<telemetry::RunFiles> files;
  std::chrono::milliseconds every{1000};
  // On the hub's thread: each status with actor steps and updates, and single lines.
  std::function<void(const telemetry::RunStatus&, std::int64_t, std::int64_t)> show;
  std::function<void(const std::string& line)> say;
};

HubActor spawn_hub(caf::actor_system& system, std::shared_ptr<HubSetup> setup);

}  // namespace troupe::actors
