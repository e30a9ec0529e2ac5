// Nodes that say all that real ones say, at the same rates, and do nothing else: the coordinator of
// a large run can be had without the run. The node's actor, its link and its reports are the real
// ones; only the role behind them is a stand-in.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <string>

#include "actors/config/run_options.hpp"
#include "actors/roles/coordinator.hpp"
#include "actors/runtime/system.hpp"

namespace troupe::actors {

// The body of a child process that a coordinator started as `PROGRAM node --connect ...`. Returns
// the exit code.
int light_node_main(int argc, char** argv);

// A run of so many environment actors, one learner with one shard, and an evaluator; nothing but
// their membership and their reports keeps the coordinator busy.
RunOptions light_options(std::int64_t actors);

// A real coordinator and its telemetry in this process, with a light node for every role of
// `options` in a child process of its own. The running program calls light_node_main for "node".
class LightRun {
 public:
  LightRun(const RunOptions& options, const std::filesystem::path& directory);
  ~LightRun();

  // Whether every node serves within the time.
  bool wait_ready(std::chrono::seconds limit) const;
  std::uint64_t messages() const;  // that the coordinator has handled
  std::string log() const;
  // Ends the run without a checkpoint; false: it did not end within the time.
  bool stop(std::chrono::seconds limit);

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace troupe::actors
