// `troupe drain`: one node of a run ends in order, for good.
#include <memory>
#include <nlohmann/json.hpp>

#include "actors/cli/control_target.hpp"
#include "actors/cli/verbs.hpp"

namespace troupe::actors::cli {
namespace {

struct DrainCommand {
  ControlTarget target;
  std::string node;
};

int drain(DrainCommand& command) {
  const std::size_t slash = command.node.rfind('/');
  if (slash != std::string::npos) {
    if (!command.target.run.empty())
      return refuse(Error{ErrorCode::kInvalidArgument,
                          command.node + " names a run already; leave out --run"});
    command.target.run = command.node.substr(0, slash);
    command.node.erase(0, slash + 1);
  }
  return ask_and_print(command.target, "drain", nlohmann::json{{"node", command.node}}.dump());
}

}  // namespace

void add_drain(CLI::App& program, int& exit_code) {
  CLI::App* verb = program.add_subcommand("drain", "Let one node of a run end in order, for good");
  verb->footer(
      "It finishes what it has under way, and the run goes on with one node less of its role.\n"
      "Example: troupe drain actor-3 --run cartpole_swingup_seed1\n"
      "         troupe drain runs/first/shard-1");
  const auto command = std::make_shared<DrainCommand>();
  verb->add_option("NODE", command->node, "Node, as `troupe status` lists it, or RUN/NODE")
      ->required();
  verb->add_option("--run", command->target.run,
                   "Name, directory or HOST:PORT of a run; default: the only one that is alive")
      ->type_name("RUN");
  add_target(*verb, command->target, false);
  verb->callback([command, &exit_code] { exit_code = drain(*command); });
}

}  // namespace troupe::actors::cli
