// `troupe watch`: joins a run's telemetry and shows it until the run ends. Owns its sockets and the
// terminal; runs in the calling thread and touches nothing of the run but its public sockets.
#pragma once

#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>

namespace troupe::actors::telemetry {

struct WatchCommand {
  std::optional<std::string> endpoint{};  // none: the newest live run under runs_directory
  std::filesystem::path runs_directory = "runs";
  // A bundle, for runs that other hosts can reach; none: they are not encrypted.
  std::optional<std::filesystem::path> certificates{};
  bool json = false;   // every message as it comes, one JSON object per line, the snapshot's first
  bool once = false;   // shows the present state and returns
  double timeout = 5;  // s to wait for the run's first answer
  double give_up_after = 30;  // s of silence after which a run counts as gone
  double plain_every = 10;    // s between plain lines where there is no terminal
  std::FILE* output = stdout;
  std::FILE* errors = stderr;
};

// 0: the run finished or was interrupted in order, `once` is done, or the user quit. 1: nothing
// answers, the run failed or vanished, or the output cannot be written. Reasons go to `errors`.
int watch_main(const WatchCommand& command);

}  // namespace troupe::actors::telemetry
