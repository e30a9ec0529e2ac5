// What the verbs of `troupe replay` are given: a run, one of its checkpoints, or a table's file.
// Main thread only.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/config/run_options.hpp"
#include "envs/spec/result.hpp"
#include "envs/spec/spec.hpp"
#include "replay/table.hpp"

namespace troupe::actors::cli {

struct ReplaySource {
  std::vector<std::filesystem::path> tables;  // one a shard, in their order
  std::string environment;                    // of the run's configuration; empty: not known
  std::int64_t time_limit = 0;
};

// A run's directory stands for its newest checkpoint. kNotFound names what is missing.
Result<ReplaySource> find_tables(const std::filesystem::path& path);

// The spec of an environment by name.
Result<EnvSpec> spec_of(const std::string& environment, std::int64_t time_limit = 0);

// A table as it was saved, with its own options. Every part of the file is checked; its seed and
// limiter go on where they were.
Result<std::unique_ptr<replay::Table>> load_table(const std::filesystem::path& path);

// 2 for what the user can mend on the command line, 1 for the rest.
int exit_code_of(const Error& error);

}  // namespace troupe::actors::cli
