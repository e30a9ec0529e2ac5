// Implements the choice of a run, and the verbs that ask it for one thing.
#include "actors/cli/control_target.hpp"

#include <charconv>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "actors/cli/verbs.hpp"
#include "actors/control/run_client.hpp"
#include "envs/spec/files.hpp"

namespace troupe::actors::cli {
namespace {

constexpr std::chrono::seconds kAnswer{20};

// Of a copy of the run's control.json.
Result<RunEntry> entry_at(const std::string& address, const std::string& file) {
  RunEntry entry{.name = address,
                 .directory = {},
                 .pid = 0,
                 .run_id = {},
                 .host = {},
                 .port = 0,
                 .secret = {}};
  const std::size_t colon = address.rfind(':');
  const char* end = address.data() + address.size();
  if (colon == std::string::npos || colon == 0 ||
      std::from_chars(address.data() + colon + 1, end, entry.port).ptr != end || entry.port == 0)
    return fail(ErrorCode::kInvalidArgument, "--secret goes with HOST:PORT, not with " + address);
  entry.host = address.substr(0, colon);
  auto text = read_text(file);
  if (!text) return tl::unexpected(text.error());
  const auto json = nlohmann::json::parse(*text, nullptr, false);
  if (!json.is_object() || json.value("secret", "").empty() || json.value("run_id", "").empty())
    return fail(ErrorCode::kInvalidArgument, file + " is no copy of a run's control.json");
  entry.secret = json.value("secret", "");
  entry.run_id = json.value("run_id", "");
  return entry;
}

}  // namespace

void add_target(CLI::App& verb, ControlTarget& target, bool with_run) {
  if (with_run)
    verb.add_option("RUN", target.run,
                    "Name, directory or HOST:PORT of a run; default: the only one that is alive");
  verb.add_option("--secret", target.secret,
                  "For HOST:PORT on another host: a copy of control.json of the run's directory")
      ->type_name("FILE");
}

Result<RunEntry> find_target(const ControlTarget& target) {
  return target.secret.empty() ? find_run(target.run) : entry_at(target.run, target.secret);
}

int ask_and_print(const ControlTarget& target, const std::string& verb,
                  const std::string& arguments) {
  const auto run = find_target(target);
  if (!run) return refuse(run.error());
  const auto answer = ask_run(*run, verb, arguments, kAnswer);
  if (!answer) leave(refuse(answer.error()));
  std::printf("%s\n", answer->c_str());
  leave(0);
}

}  // namespace troupe::actors::cli
