// `troupe stop`: ends a run as Ctrl-C in its terminal would, and waits for it.
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "actors/cli/control_target.hpp"
#include "actors/cli/verbs.hpp"
#include "actors/control/run_client.hpp"

namespace troupe::actors::cli {
namespace {

constexpr std::chrono::seconds kAnswer{20};
constexpr std::chrono::milliseconds kLook{50};

struct StopCommand {
  ControlTarget target;
  bool now = false;
};

int tell_end(const RunEntry& run) {
  const auto outcome = read_outcome(run.directory);
  if (!outcome) {
    print_error(run.name + " is gone without saying how it ended; " + run.directory.string() +
                "/log has its last words");
    return 1;
  }
  std::printf("%s %s (exit code %d): %s\n", run.name.c_str(), outcome->state.c_str(),
              outcome->exit_code, outcome->reason.c_str());
  return outcome->state == "failed" ? 1 : 0;
}

int stop(const StopCommand& command) {
  const auto run = find_target(command.target);
  if (!run) return refuse(run.error());
  const auto answer = ask_run(*run, "stop", nlohmann::json{{"now", command.now}}.dump(), kAnswer);
  if (!answer) leave(refuse(answer.error()));
  std::printf("%s\n", answer->c_str());
  std::fflush(stdout);
  if (run->directory.empty()) leave(0);  // its files are elsewhere
  while (is_held(run->directory / "control.json")) std::this_thread::sleep_for(kLook);
  leave(tell_end(*run));
}

}  // namespace

void add_stop(CLI::App& program, int& exit_code) {
  CLI::App* verb =
      program.add_subcommand("stop", "Save a checkpoint, end a run, and say how it ended");
  verb->footer(
      "The same as Ctrl-C where it runs; `troupe run` with the same words resumes it.\n"
      "Example: troupe stop cartpole_swingup_seed1\n"
      "         troupe stop runs/first --now");
  const auto command = std::make_shared<StopCommand>();
  add_target(*verb, command->target);
  verb->add_flag("--now", command->now, "Save no checkpoint");
  verb->callback([command, &exit_code] { exit_code = stop(*command); });
}

}  // namespace troupe::actors::cli
