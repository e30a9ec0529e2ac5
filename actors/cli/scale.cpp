// `troupe scale`: more or fewer nodes of a role while the run goes on.
#include <algorithm>
#include <charconv>
#include <memory>
#include <nlohmann/json.hpp>

#include "actors/cli/control_target.hpp"
#include "actors/cli/verbs.hpp"
#include "actors/config/nearest.hpp"

namespace troupe::actors::cli {
namespace {

struct ScaleCommand {
  ControlTarget target;
  std::vector<std::string> words;  // [RUN] ROLE=COUNT…
};

const std::vector<std::string>& roles() {
  static const std::vector<std::string> names{"actors", "learners", "shards"};
  return names;
}

Result<nlohmann::json> count_of(const std::string& word) {
  const std::size_t sign = word.find('=');
  const std::string role = word.substr(0, sign), number = word.substr(sign + 1);
  if (std::find(roles().begin(), roles().end(), role) == roles().end()) {
    const std::string nearest = nearest_name(role, roles());
    return fail(ErrorCode::kInvalidArgument,
                "actors, learners and shards can be scaled, not " + role +
                    (nearest.empty() ? "" : "; did you mean " + nearest + "?"));
  }
  std::uint32_t count = 0;
  const char* end = number.data() + number.size();
  if (number.empty() || std::from_chars(number.data(), end, count).ptr != end)
    return fail(ErrorCode::kInvalidArgument,
                word + ": a number of nodes is expected, not \"" + number + "\"");
  return nlohmann::json{{role, count}};
}

int scale(ScaleCommand& command) {
  nlohmann::json counts = nlohmann::json::object();
  for (const std::string& word : command.words) {
    if (word.find('=') == std::string::npos && command.target.run.empty()) {
      command.target.run = word;
      continue;
    }
    const auto count = count_of(word);
    if (!count) return refuse(count.error());
    counts.update(*count);
  }
  if (counts.empty())
    return refuse(Error{ErrorCode::kInvalidArgument, "say how many, as in actors=8"});
  return ask_and_print(command.target, "scale", counts.dump());
}

}  // namespace

void add_scale(CLI::App& program, int& exit_code) {
  CLI::App* verb =
      program.add_subcommand("scale", "More or fewer nodes of a role while the run goes on");
  verb->footer(
      "Nodes that are too many finish what they have under way first. A run that is resumed goes "
      "on with as many.\n"
      "Example: troupe scale cartpole_swingup_seed1 actors=8\n"
      "         troupe scale runs/first actors=2 learners=2 shards=2");
  const auto command = std::make_shared<ScaleCommand>();
  verb->add_option("COUNTS", command->words,
                   "A run, as `troupe status` lists it, and how many actors, learners or shards")
      ->required();
  add_target(*verb, command->target, false);
  verb->callback([command, &exit_code] { exit_code = scale(*command); });
}

}  // namespace troupe::actors::cli
