// `troupe status`: how a run stands, node by node, or which runs there are.
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "actors/cli/control_target.hpp"
#include "actors/cli/verbs.hpp"
#include "actors/control/run_client.hpp"
#include "actors/control/status_text.hpp"

namespace troupe::actors::cli {
namespace {

using Json = nlohmann::json;

constexpr std::chrono::seconds kAnswer{10};

struct StatusCommand {
  ControlTarget target;
  bool json = false;
};

int list(bool as_json) {
  Json all = Json::array();
  bool answered = true;
  const auto runs = live_runs();
  if (runs.empty() && !as_json)
    std::printf("no run is alive; start one with `troupe run CONFIG`\n");
  for (const RunEntry& run : runs) {
    const auto status = ask_run(run, "status", "{}", kAnswer);
    answered = answered && status;
    const std::string said = status ? *status
                                    : Json{{"run", run.name},
                                           {"directory", run.directory.string()},
                                           {"pid", run.pid},
                                           {"error", status.error().message}}
                                          .dump(-1, ' ', false, Json::error_handler_t::replace);
    if (as_json)
      all.push_back(Json::parse(said, nullptr, false));
    else
      std::printf(
          "%s  %s\n",
          status ? status_line(said).c_str()
                 : (run.name + "  pid " + std::to_string(run.pid) + "  " + status.error().message)
                       .c_str(),
          run.directory.c_str());
  }
  if (as_json) std::printf("%s\n", all.dump(2).c_str());
  leave(answered ? 0 : 1);
}

int show(const StatusCommand& command) {
  if (command.target.run.empty()) return list(command.json);
  const auto run = find_target(command.target);
  if (!run) return refuse(run.error());
  const auto status = ask_run(*run, "status", "{}", kAnswer);
  if (!status) leave(refuse(status.error()));
  if (command.json)
    std::printf("%s\n", status->c_str());
  else
    std::printf("%s", status_text(*status).c_str());
  leave(0);
}

}  // namespace

void add_status(CLI::App& program, int& exit_code) {
  CLI::App* verb = program.add_subcommand("status", "How a run stands, node by node; all runs");
  verb->footer(
      "Without RUN: one line for each run of this user on this host.\n"
      "Example: troupe status\n"
      "         troupe status cartpole_swingup_seed1 --json");
  const auto command = std::make_shared<StatusCommand>();
  add_target(*verb, command->target);
  verb->add_flag("--json", command->json, "One JSON object, or a list of them");
  verb->callback([command, &exit_code] { exit_code = show(*command); });
}

}  // namespace troupe::actors::cli
