// What `troupe deploy` prints scripts and manifests from. Pure.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>

#include "actors/config/reader.hpp"

namespace troupe::actors::cli {

struct DeployPlan {
  std::string name;                           // of the run: lower case letters, digits and dashes
  std::string config_path;                    // as given
  std::string config;                         // complete, as YAML
  std::int64_t hosts = 2;                     // the coordinator's included
  std::int64_t cores = 1, memory_mib = 1024;  // of each host
  std::int64_t storage_gib = 20;
  std::uint16_t port = 7700;                     // where hosts join
  std::chrono::seconds grace{10}, wall_time{0};  // 0: no limit
  std::string image;                             // kubernetes
  std::string partition;                         // slurm; empty: the cluster's default
  std::filesystem::path certificates;            // slurm: folder with one bundle for each role
  bool with_secrets = false;                     // kubernetes: print the secrets themselves
  bool secured_telemetry = false;                // telemetry.endpoint is not loopback
};

std::string slurm_script(const DeployPlan& plan);
// Errors name a bundle that cannot be read.
Result<std::string> kubernetes_manifest(const DeployPlan& plan);

// The bundles' names: folders of `certificates`, and secrets.
inline constexpr const char* kHeadBundle = "head";
inline constexpr const char* kWorkerBundle = "worker";

// 'text', whatever is in it, for a POSIX shell.
std::string shell_quoted(const std::string& text);

}  // namespace troupe::actors::cli
