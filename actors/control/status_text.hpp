// A run's status as a terminal shows it. Pure.
#pragma once

#include <string>

namespace troupe::actors {

// Of the JSON that a run answers to "status" (actors/roles/coordinator_status.hpp): how the run
// stands, its ledger, its counts, and a table of its nodes. Text that is no such JSON is returned
// as it is.
std::string status_text(const std::string& json);

// One line of it, for a list of runs.
std::string status_line(const std::string& json);

}  // namespace troupe::actors
