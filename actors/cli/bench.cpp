// `troupe bench`: how fast the parts are, beside what the machine could do at best. Measurements as
// text; with --json the last line is one object with a `ratios` map.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "actors/cli/bench_learner.hpp"
#include "actors/cli/bench_replay.hpp"
#include "actors/cli/verbs.hpp"
#include "envs/benchmark.hpp"

namespace troupe::actors::cli {
namespace {

using Json = nlohmann::ordered_json;

struct EnvBenchCommand {
  std::vector<std::string> tasks = {"dmc/cartpole_swingup", "dmc/cheetah_run", "dmc/walker_walk"};
  int rounds = 7;
  bool json = false;
};

Json spread_json(const envs::Spread& spread) {
  return {{"min", spread.min}, {"median", spread.median}, {"max", spread.max}};
}

Json env_json(const envs::EnvBenchmark& result) {
  return {{"task", result.task},
          {"rounds", result.rounds},
          {"control_steps", result.control_steps},
          {"physics_steps", result.physics_steps},
          {"evaluates_again", result.evaluates_again},
          {"control_steps_per_second", spread_json(result.control_steps_per_second)},
          {"physics_steps_per_second", spread_json(result.physics_steps_per_second)},
          {"raw_physics_steps_per_second", spread_json(result.raw_physics_steps_per_second)},
          {"ratio", spread_json(result.ratio)}};
}

int bench_env(const EnvBenchCommand& command) {
  std::printf(
      "per core, medians of %d rounds; raw: mj_step alone over the same states and actions\n",
      command.rounds);
  std::printf("%-24s %14s %14s %14s %8s\n", "task", "control/s", "physics/s", "raw physics/s",
              "ratio");
  Json tasks = Json::array();
  Json ratios = Json::object();
  // Over the tasks whose step is nothing but mj_steps; the others would only show what they add.
  std::optional<double> smallest;
  for (const std::string& task : command.tasks) {
    const auto result = envs::benchmark_env({.task = task, .rounds = command.rounds});
    if (!result) {
      print_error(result.error().message);
      return result.error().code == ErrorCode::kNotFound ||
                     result.error().code == ErrorCode::kInvalidArgument
                 ? 2
                 : 1;
    }
    std::printf("%-24s %14.0f %14.0f %14.0f %8.3f%s\n", task.c_str(),
                result->control_steps_per_second.median, result->physics_steps_per_second.median,
                result->raw_physics_steps_per_second.median, result->ratio.median,
                result->evaluates_again ? "  (and one mj_step1 per step, which raw has not)" : "");
    std::fflush(stdout);
    ratios["raw_physics/" + task] = result->ratio.median;
    if (!result->evaluates_again)
      smallest = std::min(result->ratio.median, smallest.value_or(result->ratio.median));
    tasks.push_back(env_json(*result));
  }
  if (command.json) {
    if (smallest) ratios["raw_physics_min"] = *smallest;
    const Json object{{"benchmark", "env"}, {"tasks", tasks}, {"ratios", ratios}};
    std::printf("%s\n", object.dump().c_str());
  }
  return 0;
}

void add_bench_env(CLI::App& bench, int& exit_code) {
  CLI::App* verb = bench.add_subcommand("env", "Environment steps beside MuJoCo alone");
  verb->footer("Example: troupe bench env dmc/walker_walk --json");
  const auto command = std::make_shared<EnvBenchCommand>();
  verb->add_option("TASKS", command->tasks, "Physics tasks; default: cartpole, cheetah and walker");
  verb->add_option("--rounds", command->rounds, "Measurements of each, at least 5")
      ->check(CLI::Range(5, 1000));
  verb->add_flag("--json", command->json, "End with one JSON object");
  verb->callback([command, &exit_code] { exit_code = bench_env(*command); });
}

}  // namespace

void add_bench(CLI::App& program, int& exit_code) {
  CLI::App* verb =
      program.add_subcommand("bench", "Measure parts beside what the machine could do");
  verb->require_subcommand(1);
  verb->footer("Example: troupe bench env --json | tail -1");
  add_bench_env(*verb, exit_code);
  add_bench_learner(*verb, exit_code);
  add_bench_replay(*verb, exit_code);
}

}  // namespace troupe::actors::cli
