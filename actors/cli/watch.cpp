// `troupe watch`: shows a run while it goes on.
#include "actors/telemetry/watch.hpp"

#include <memory>

#include "actors/cli/verbs.hpp"

namespace troupe::actors::cli {

void add_watch(CLI::App& program, int& exit_code) {
  CLI::App* verb = program.add_subcommand("watch", "Show a run while it goes on");
  verb->footer(
      "Example: troupe watch\n"
      "         troupe watch tcp://127.0.0.1:40123 --json | head -1\n"
      "         troupe watch tcp://10.1.2.3:40123 --certificates certificates/desk");
  const auto command = std::make_shared<telemetry::WatchCommand>();
  verb->add_option("ENDPOINT", command->endpoint,
                   "Address that the run printed; default: the newest live run");
  verb->add_option("--runs-directory", command->runs_directory, "Where runs are kept")
      ->type_name("DIR");
  verb->add_option("--certificates", command->certificates,
                   "Folder of this host's certificate, for runs that other hosts can reach")
      ->type_name("DIR");
  verb->add_flag("--json", command->json, "Every message as it comes, one JSON object per line");
  verb->add_flag("--once", command->once, "Show the present state and end");
  verb->add_option("--timeout", command->timeout, "Seconds to wait for the run's answer")
      ->type_name("SECONDS")
      ->check(CLI::Range(0.01, 3600.0));
  verb->callback([command, &exit_code] { exit_code = telemetry::watch_main(*command); });
}

}  // namespace troupe::actors::cli
