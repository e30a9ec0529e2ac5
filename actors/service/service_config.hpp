// The service's configuration file: where it listens, its bounds, and tables that exist from the
// start. Main thread only.
//
//   endpoint: tcp://127.0.0.1:7700
//   checkpoint_directory: /var/lib/replay
//   disk: /var/tmp         # steps are kept there instead of in memory
//   disk_mib: 100000
//   tables:
//     - name: transitions
//       observation: [{name: observation, dtype: f32, shape: [17]}]
//       step: [{name: action, dtype: f32, shape: [6]}]
//       options: {capacity: 1000000, n_step: 5, min_size: 1000}
#pragma once

#include <filesystem>
#include <vector>

#include "actors/service/replay_service.hpp"

namespace troupe::actors {

struct ServiceConfig {
  ServiceOptions options;
  std::vector<TableRequest> tables;
};

// Reads into `config`, whose present values are the defaults. Strict: kNotFound, kIo or
// kInvalidArgument name the file and the key.
Result<void> read_service_config(const std::filesystem::path& path, ServiceConfig& config);

// `troupe replay serve`: serves until SIGINT or SIGTERM, then writes the checkpoints if there is a
// directory for them. Prints the endpoint on stdout once clients may connect. Exit code: 0 stopped,
// 1 failed, 2 bad usage.
int serve_replay(const ServiceConfig& config);

}  // namespace troupe::actors
