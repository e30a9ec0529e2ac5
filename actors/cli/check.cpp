// `troupe check`: what a configuration means, before anything starts.
#include <cstdio>
#include <memory>

#include "actors/cli/check_report.hpp"
#include "actors/cli/verbs.hpp"
#include "actors/config/checks.hpp"
#include "actors/config/printer.hpp"
#include "actors/config/reader.hpp"
#include "envs/registry.hpp"
#include "learners/validate.hpp"

namespace troupe::actors::cli {
namespace {

struct CheckCommand {
  std::string config;
  std::vector<std::string> overrides;
  bool print = false;
  bool json = false;
};

// What the job asks of the learning options and of the environment.
Result<void> check_job(const RunOptions& options, const EnvSpec& spec) {
  if (options.job != "d4pg") return {};
  if (auto valid = learners::validate(options.learners.learner); !valid) return valid;
  return learners::validate_d4pg_spec(spec);
}

void show(const CheckCommand& command, const LoadedConfig& config,
          const nlohmann::ordered_json& report) {
  if (command.json) {
    std::printf("%s\n", report.dump().c_str());
  } else if (command.print) {
    std::fputs(print_yaml(config).c_str(), stdout);
  } else {
    std::fputs(check_text(report).c_str(), stdout);
  }
}

int check(const CheckCommand& command) {
  const auto config = load_config(command.config, command.overrides);
  if (!config) {
    print_error(config.error().message);
    return 2;
  }
  for (const std::string& note : config->notes) print_error(note);
  if (learns_from_pictures(config->options)) {
    const auto sets = open_checked_pictures(config->options);
    if (!sets) {
      print_error(command.config + ": " + sets.error().message);
      return 2;
    }
    show(command, *config, check_report(command.config, *config, *sets));
    return 0;
  }
  const EnvironmentOptions& environment = config->options.environment;
  const auto env = envs::make_env(environment.name, {.time_limit = environment.time_limit});
  if (!env) {
    print_error(config->origin("environment.name").text() +
                ": environment.name: " + env.error().message);
    return 2;
  }
  if (const auto valid = check_job(config->options, (*env)->spec()); !valid) {
    print_error(command.config + ": " + valid.error().message);
    return 2;
  }
  show(command, *config, check_report(command.config, *config, (*env)->spec()));
  return 0;
}

}  // namespace

void add_check(CLI::App& program, int& exit_code) {
  CLI::App* verb = program.add_subcommand(
      "check", "Read a configuration and show nodes, ports and memory without starting anything");
  verb->footer(
      "Example: troupe check configs/cartpole_swingup.yaml\n"
      "         troupe check configs/cartpole_swingup.yaml --set actors.count=8 --print");
  const auto command = std::make_shared<CheckCommand>();
  verb->add_option("CONFIG", command->config, "Configuration file (`troupe help config`)")
      ->required();
  add_overrides(*verb, command->overrides);
  CLI::Option* print = verb->add_flag("--print", command->print,
                                      "Print every key's final value and where it is from");
  verb->add_flag("--json", command->json, "One JSON object")->excludes(print);
  verb->callback([command, &exit_code] { exit_code = check(*command); });
}

}  // namespace troupe::actors::cli
