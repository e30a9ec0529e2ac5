// The verbs of `troupe replay`, one file each. Main thread only.
#pragma once

#include <CLI/CLI.hpp>

namespace troupe::actors::cli {

void add_replay_export(CLI::App& replay, int& exit_code);
void add_replay_info(CLI::App& replay, int& exit_code);
void add_replay_import(CLI::App& replay, int& exit_code);
void add_replay_serve(CLI::App& replay, int& exit_code);

}  // namespace troupe::actors::cli
