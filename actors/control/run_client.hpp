// Speaks to a live run from another process. Blocks; one call at a time from any thread.
#pragma once

#include <chrono>
#include <string>

#include "actors/control/run_listing.hpp"

namespace troupe::actors {

// One ControlRequest (actors/messages/messages.hpp has the verbs) and what the run answers to it.
// kUnavailable: it cannot be reached; kTimeout: it did not answer; kInvalidArgument: it refuses,
// and why. The connection's threads stay behind: end the program by leave().
Result<std::string> ask_run(const RunEntry& run, const std::string& verb,
                            const std::string& arguments, std::chrono::milliseconds timeout);

// Ends a program that has spoken to a run, with all that it printed written.
[[noreturn]] void leave(int exit_code);

}  // namespace troupe::actors
