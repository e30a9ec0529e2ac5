// Checks of what a run shows to other hosts; see checks.hpp. Pure functions, any thread.
#pragma once

#include <string>
#include <vector>

#include "actors/config/run_options.hpp"

namespace troupe::actors {

// Appends a line for each fault.
void check_cluster(const RunOptions& options, std::vector<std::string>& lines);
// What a user should read at the start of a run that cluster.insecure lets through.
std::vector<std::string> security_warnings(const RunOptions& options);

}  // namespace troupe::actors
