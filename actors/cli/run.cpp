// `troupe run`: trains what a configuration describes.
#include <memory>

#include "actors/cli/commands.hpp"
#include "actors/cli/verbs.hpp"

namespace troupe::actors::cli {
namespace {

std::string joined(const std::vector<std::string>& words) {
  std::string line = "troupe run";
  for (const std::string& word : words) line += " " + word;
  return line;
}

}  // namespace

void add_run(CLI::App& program, int& exit_code) {
  CLI::App* verb =
      program.add_subcommand("run", "Train what a configuration describes, or resume it");
  verb->footer(
      "The same command resumes a run that was stopped. Ctrl-C saves a checkpoint and stops.\n"
      "Example: troupe run configs/cartpole_swingup.yaml --run-directory runs/first --set seed=2\n"
      "         troupe run configs/cheetah_run.yaml --set d4pg.policy=[256,256] --set "
      "stop.wall_time=1h");
  const auto command = std::make_shared<RunCommand>();
  verb->add_option("CONFIG", command->config, "Configuration file (`troupe help config`)")
      ->required();
  verb->add_option("--run-directory", command->run_directory,
                   "Where the run is kept; default: runs/ and the configuration's name")
      ->type_name("DIR");
  add_overrides(*verb, command->overrides);
  verb->add_flag("-v,--verbose", command->verbose, "Show every node's log lines");
  verb->add_flag("-q,--quiet", command->quiet, "Show no progress line");
  verb->callback([command, &exit_code] {
    std::vector<std::string> words{command->config.string()};
    if (command->run_directory) {
      words.insert(words.end(), {"--run-directory", command->run_directory->string()});
    }
    for (const std::string& text : command->overrides) words.insert(words.end(), {"--set", text});
    if (command->verbose) words.push_back("--verbose");
    if (command->quiet) words.push_back("--quiet");
    command->command_line = joined(words);
    exit_code = run_main(*command);
  });
}

}  // namespace troupe::actors::cli
