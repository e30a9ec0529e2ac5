// What the verbs of `troupe` that run something are told, and the functions that do it. Plain
// values; the functions belong to the main thread, print to the terminal and return the exit code:
// 0 finished, 1 failed, 2 bad usage or configuration, 130 interrupted after a checkpoint.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace troupe::actors {

// `troupe run CONFIG`.
struct RunCommand {
  std::filesystem::path config;
  std::optional<std::filesystem::path> run_directory;  // none: runs/<name of the config>
  std::vector<std::string> overrides;                  // "a.b=c" each, for load_config
  bool verbose = false;                                // log lines of every node on the console
  bool quiet = false;                                  // no progress line
  std::string command_line;                            // as typed, for the run directory
};

// `troupe node`: a child process of a run; started by it, never by hand.
struct NodeCommand {
  std::string connect;            // HOST:PORT of the coordinator
  std::string name;               // "actor-0"
  std::uint32_t incarnation = 0;  // given by the coordinator
  std::uint64_t run_id = 0;       // of the run that it belongs to
};

// Defined by the jobs.
int run_main(const RunCommand& command);
int node_main(const NodeCommand& command);

}  // namespace troupe::actors
