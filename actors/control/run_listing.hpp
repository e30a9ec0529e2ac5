// The runs that live on this host: each lists itself in a folder of its user's while it lives and
// says in its own directory, for its user alone, how it can be spoken to. Any thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "actors/control/held_file.hpp"

namespace troupe::actors {

// How to speak to a live run.
struct RunEntry {
  std::string name;                 // of its directory
  std::filesystem::path directory;  // empty: on another host
  std::int64_t pid = 0;             // of `troupe run`
  std::string run_id;               // names this start of it, for the connection
  std::string host;
  std::uint16_t port = 0;  // 0: it takes no requests
  std::string secret;      // whoever knows it may stop and scale the run
};

// How a run ended, as it left it in its directory.
struct RunOutcome {
  std::string state, reason;  // "finished" | "interrupted" | "failed"
  int exit_code = 0;
};

// A run's listing, from its start to its end. One owner: the process of `troupe run`.
class RunListing {
 public:
  // Writes control.json into the run's directory and its twin into the user's folder. kIo when the
  // former cannot be written; without the latter the run is only found by its directory, and
  // note() says why.
  static Result<RunListing> publish(const RunEntry& entry);
  const std::string& note() const { return note_; }

 private:
  explicit RunListing(HeldFile own) : own_(std::move(own)) {}
  HeldFile own_;
  std::optional<HeldFile> listed_;
  std::string note_;
};

// 128 bits of the kernel's, in hexadecimal.
std::string make_secret();

// Where the user's runs are listed: $XDG_RUNTIME_DIR/troupe/runs, else $XDG_CACHE_HOME or ~/.cache
// instead of the former.
std::filesystem::path listing_folder();

// The live runs of this user, by name. Those that ended without a word are removed from the list.
std::vector<RunEntry> live_runs();

// `run`: the name of a live run, its directory (in which case it need not be listed), HOST:PORT, or
// empty for the only one. kNotFound says what there is, kInvalidArgument that several have the
// name.
Result<RunEntry> find_run(const std::string& run);

// outcome.json of a run directory.
Result<void> write_outcome(const std::filesystem::path& directory, const RunOutcome& outcome);
void forget_outcome(const std::filesystem::path& directory);
std::optional<RunOutcome> read_outcome(const std::filesystem::path& directory);

}  // namespace troupe::actors
