// `troupe replay`: what tables hold, as files that others read, and back; and tables served.
#include "actors/cli/replay_verbs.hpp"
#include "actors/cli/verbs.hpp"

namespace troupe::actors::cli {

void add_replay(CLI::App& program, int& exit_code) {
  CLI::App* verb =
      program.add_subcommand("replay", "Export, import, explain or serve what a replay holds");
  verb->require_subcommand(1);
  verb->footer(
      "Example: troupe replay info runs/first\n"
      "         troupe replay export runs/first episodes.hdf5");
  add_replay_export(*verb, exit_code);
  add_replay_info(*verb, exit_code);
  add_replay_import(*verb, exit_code);
  add_replay_serve(*verb, exit_code);
}

}  // namespace troupe::actors::cli
