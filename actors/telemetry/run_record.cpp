// The small files of a run directory declared in run_files.hpp: versions.json, command.txt and
// telemetry.json. No thread rule beyond one owner per directory.
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <nlohmann/json.hpp>
#include <sstream>

#include "actors/telemetry/run_files.hpp"
#include "envs/spec/files.hpp"

namespace troupe::actors::telemetry {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

std::string utc(double unix_time) {
  const auto seconds = static_cast<std::time_t>(unix_time);
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

std::string shell_quoted(const std::string& word) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=,@%+";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return quoted + "'";
}

// When the process began, in clock ticks since boot: field 22 of /proc/<pid>/stat; 0 when unknown.
std::uint64_t start_of_process(std::int64_t pid) {
  const std::string path = "/proc/" + std::to_string(pid) + "/stat";
  std::FILE* file = std::fopen(path.c_str(), "re");
  if (!file) return 0;
  std::string text(4096, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file));
  std::fclose(file);
  // The second field, the name in brackets, may itself hold spaces and brackets.
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return 0;
  std::istringstream fields(text.substr(name_end + 1));
  std::string skipped;
  for (int i = 3; i < 22; ++i) fields >> skipped;
  std::uint64_t start = 0;
  fields >> start;
  return start;
}

}  // namespace

Result<void> record_versions(const fs::path& directory,
                             const std::map<std::string, std::string>& versions, double unix_time) {
  const fs::path path = directory / "versions.json";
  Json list = Json::array();
  if (const auto content = read_text(path)) {
    list = Json::parse(*content, nullptr, false);
    if (!list.is_array()) {
      return fail(ErrorCode::kCorrupt, "'" + path.string() + "' is not a JSON list: move it away");
    }
  } else if (content.error().code != ErrorCode::kNotFound) {
    return tl::unexpected(content.error());
  }
  const Json now(versions);
  if (!list.empty() && list.back().is_object() && list.back().value("versions", Json()) == now) {
    return {};
  }
  list.push_back({{"time", utc(unix_time)}, {"versions", now}});
  return write_file(path, list.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

Result<void> record_command(const fs::path& directory, const std::vector<std::string>& arguments,
                            double unix_time) {
  const fs::path path = directory / "command.txt";
  auto content = read_text(path);
  if (!content && content.error().code != ErrorCode::kNotFound)
    return tl::unexpected(content.error());
  std::string text = content ? *content : "";
  text += "# " + utc(unix_time) + "\n";
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    text += (i > 0 ? " " : "") + shell_quoted(arguments[i]);
  }
  return write_file(path, text + "\n");
}

Announcement announcement_of_this_process(std::string run, std::string endpoint,
                                          std::string snapshot_endpoint) {
  const std::int64_t pid = ::getpid();
  return {.run = std::move(run),
          .endpoint = std::move(endpoint),
          .snapshot_endpoint = std::move(snapshot_endpoint),
          .pid = pid,
          .process_start = start_of_process(pid)};
}

Result<void> announce(const fs::path& directory, const Announcement& announcement) {
  const Json json = {{"run", announcement.run},
                     {"endpoint", announcement.endpoint},
                     {"snapshot_endpoint", announcement.snapshot_endpoint},
                     {"pid", announcement.pid},
                     {"process_start", announcement.process_start}};
  return write_file(directory / "telemetry.json",
                    json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

void withdraw_announcement(const fs::path& directory) {
  std::error_code ignored;
  fs::remove(directory / "telemetry.json", ignored);
}

Result<Announcement> read_announcement(const fs::path& directory) {
  const fs::path path = directory / "telemetry.json";
  const auto content = read_text(path);
  if (!content) return tl::unexpected(content.error());
  try {
    const Json json = Json::parse(*content);
    return Announcement{.run = json.at("run"),
                        .endpoint = json.at("endpoint"),
                        .snapshot_endpoint = json.at("snapshot_endpoint"),
                        .pid = json.at("pid"),
                        .process_start = json.at("process_start")};
  } catch (const Json::exception& error) {
    return fail(ErrorCode::kCorrupt,
                "'" + path.string() + "' does not say where to watch: " + error.what());
  }
}

bool is_alive(const Announcement& announcement) {
  if (announcement.pid <= 0) return false;
  if (::kill(static_cast<pid_t>(announcement.pid), 0) != 0 && errno != EPERM) return false;
  return start_of_process(announcement.pid) == announcement.process_start;
}

Result<Announcement> newest_live_run(const fs::path& runs) {
  std::optional<Announcement> newest;
  fs::file_time_type newest_time;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(runs, ignored)) {
    const auto time = fs::last_write_time(entry.path() / "telemetry.json", ignored);
    if (ignored || (newest && time <= newest_time)) continue;
    const auto announcement = read_announcement(entry.path());
    if (!announcement || !is_alive(*announcement)) continue;
    newest = *announcement;
    newest_time = time;
  }
  if (newest) return *newest;
  return fail(ErrorCode::kNotFound,
              "no run in '" + runs.string() +
                  "' is alive: start one with `troupe run CONFIG`, or name its "
                  "endpoint");
}

}  // namespace troupe::actors::telemetry
