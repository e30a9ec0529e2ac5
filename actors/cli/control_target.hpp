// Which run a verb speaks to. Main thread only.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "actors/control/run_listing.hpp"

namespace troupe::actors::cli {

struct ControlTarget {
  std::string run;     // a name, a directory or HOST:PORT; empty: the only one that is alive
  std::string secret;  // copy of control.json of a run on another host; empty: none
};

// RUN, and --secret.
void add_target(CLI::App& verb, ControlTarget& target, bool with_run = true);

Result<RunEntry> find_target(const ControlTarget& target);

// Asks the run, prints its answer, and returns the exit code.
int ask_and_print(const ControlTarget& target, const std::string& verb,
                  const std::string& arguments);

}  // namespace troupe::actors::cli
