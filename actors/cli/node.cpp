// `troupe node`: one node of a run, started by the run itself and therefore not listed in the help.
#include <memory>

#include "actors/cli/commands.hpp"
#include "actors/cli/verbs.hpp"

namespace troupe::actors::cli {

void add_node(CLI::App& program, int& exit_code) {
  CLI::App* verb = program.add_subcommand("node", "One node of a run; started by `troupe run`");
  verb->group("");
  const auto command = std::make_shared<NodeCommand>();
  verb->add_option("--connect", command->connect, "Coordinator")
      ->type_name("HOST:PORT")
      ->required();
  verb->add_option("--name", command->name, "Name in the run")->required();
  verb->add_option("--incarnation", command->incarnation, "How often this node was started before");
  verb->add_option("--run-id", command->run_id, "The run that it belongs to");
  verb->callback([command, &exit_code] { exit_code = node_main(*command); });
}

}  // namespace troupe::actors::cli
