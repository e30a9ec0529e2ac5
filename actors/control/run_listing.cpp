// Implements the list of live runs.
#include "actors/control/run_listing.hpp"

#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "actors/config/nearest.hpp"
#include "envs/spec/files.hpp"

namespace troupe::actors {

namespace fs = std::filesystem;
using Json = nlohmann::json;

namespace {

constexpr const char *kControl = "control.json", *kOutcome = "outcome.json";

std::string to_text(const RunEntry& entry) {
  return Json{{"name", entry.name},    {"directory", entry.directory.string()},
              {"pid", entry.pid},      {"run_id", entry.run_id},
              {"host", entry.host},    {"port", entry.port},
              {"secret", entry.secret}}
             .dump(2, ' ', false, Json::error_handler_t::replace) +
         "\n";
}

Result<RunEntry> read_entry(const fs::path& path) {
  const auto text = read_text(path);
  if (!text) return tl::unexpected(text.error());
  try {
    const Json json = Json::parse(*text);
    return RunEntry{.name = json.at("name"),
                    .directory = json.at("directory").get<std::string>(),
                    .pid = json.at("pid"),
                    .run_id = json.at("run_id"),
                    .host = json.at("host"),
                    .port = json.at("port"),
                    .secret = json.at("secret")};
  } catch (const Json::exception& error) {
    return fail(ErrorCode::kCorrupt,
                path.string() + " does not say how to reach a run: " + error.what());
  }
}

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// kIo when it cannot be made or could be written by others.
Result<fs::path> make_folder() {
  const fs::path folder = listing_folder();
  std::error_code error;
  fs::create_directories(folder.parent_path(), error);
  if (!error && ::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
    error = std::error_code(errno, std::generic_category());
  if (error)
    return fail(ErrorCode::kIo, "cannot create " + folder.string() + ": " + error.message());
  struct stat found {};
  if (::lstat(folder.c_str(), &found) != 0 || !S_ISDIR(found.st_mode) ||
      found.st_uid != ::geteuid() || (found.st_mode & 022) != 0)
    return fail(ErrorCode::kIo, folder.string() + " is not a folder that only its owner may write");
  return folder;
}

std::string names_of(const std::vector<RunEntry>& runs) {
  std::string names;
  for (const RunEntry& run : runs) names += (names.empty() ? "" : ", ") + run.name;
  return names;
}

Result<RunEntry> in_directory(const fs::path& directory) {
  std::error_code error;
  if (!fs::is_directory(directory, error))
    return fail(ErrorCode::kNotFound, "there is no run directory " + directory.string());
  const fs::path file = directory / kControl;
  if (is_held(file)) return read_entry(file);
  const auto outcome = read_outcome(directory);
  return fail(
      ErrorCode::kNotFound,
      "no process runs in " + directory.string() +
          (outcome ? "; the last run there was " + outcome->state + ": " + outcome->reason : ""));
}

std::string address_of(const RunEntry& run) { return run.host + ":" + std::to_string(run.port); }

Result<RunEntry> only_one(const std::vector<RunEntry>& runs) {
  if (runs.size() == 1) return runs.front();
  if (runs.empty())
    return fail(ErrorCode::kNotFound, "no run is alive: start one with `troupe run CONFIG`");
  return fail(ErrorCode::kInvalidArgument, "several runs are alive, say which: " + names_of(runs));
}

}  // namespace

std::string make_secret() {
  std::array<unsigned char, 16> bytes{};
  std::size_t got = 0;
  while (got < bytes.size()) {
    const ssize_t count = ::getrandom(bytes.data() + got, bytes.size() - got, 0);
    if (count > 0) got += static_cast<std::size_t>(count);
  }
  std::string text;
  for (const unsigned char byte : bytes) {
    constexpr const char* kDigits = "0123456789abcdef";
    text += {kDigits[byte >> 4], kDigits[byte & 15]};
  }
  return text;
}

fs::path listing_folder() {
  std::error_code error;
  std::string base = environment("XDG_RUNTIME_DIR");
  if (base.empty() || !fs::is_directory(base, error)) base = environment("XDG_CACHE_HOME");
  if (base.empty() && !environment("HOME").empty()) base = environment("HOME") + "/.cache";
  // Of a user without a home.
  if (base.empty())
    return fs::temp_directory_path(error) / ("troupe-runs-" + std::to_string(::geteuid()));
  return fs::path(base) / "troupe" / "runs";
}

Result<RunListing> RunListing::publish(const RunEntry& entry) {
  const std::string text = to_text(entry);
  auto own = HeldFile::create(entry.directory / kControl, text);
  if (!own) return tl::unexpected(own.error());
  RunListing listing(std::move(*own));
  const auto folder = make_folder();
  auto listed = folder ? HeldFile::create(*folder / (entry.run_id + ".json"), text)
                       : tl::unexpected(folder.error());
  if (listed)
    listing.listed_.emplace(std::move(*listed));
  else
    listing.note_ = "the run is only found by its directory: " + listed.error().message;
  return listing;
}

std::vector<RunEntry> live_runs() {
  std::vector<RunEntry> runs;
  std::error_code error;
  for (const auto& file : fs::directory_iterator(listing_folder(), error)) {
    if (file.path().extension() != ".json") continue;
    if (!is_held(file.path())) {
      std::error_code ignored;
      fs::remove(file.path(), ignored);
    } else if (auto entry = read_entry(file.path())) {
      runs.push_back(*std::move(entry));
    }
  }
  std::sort(runs.begin(), runs.end(), [](const RunEntry& a, const RunEntry& b) {
    return std::tie(a.name, a.directory) < std::tie(b.name, b.directory);
  });
  return runs;
}

Result<RunEntry> find_run(const std::string& run) {
  const std::vector<RunEntry> runs = live_runs();
  if (run.empty()) return only_one(runs);
  std::vector<RunEntry> named;
  std::vector<std::string> names;
  for (const RunEntry& entry : runs) {
    if (entry.name == run || address_of(entry) == run) named.push_back(entry);
    names.push_back(entry.name);
  }
  if (named.size() == 1) return named.front();
  if (named.size() > 1) {
    std::string directories;
    for (const RunEntry& entry : named) directories += "\n  " + entry.directory.string();
    return fail(ErrorCode::kInvalidArgument,
                "several runs are called " + run + "; give the directory of one:" + directories);
  }
  std::error_code error;
  for (const fs::path& directory : {fs::path(run), fs::path("runs") / run})
    if (fs::is_directory(directory, error))
      return in_directory(fs::absolute(directory).lexically_normal());
  const std::string nearest = nearest_name(run, names);
  return fail(
      ErrorCode::kNotFound,
      "no run is called " + run +
          (nearest.empty() ? (runs.empty() ? "; none is alive" : "; alive: " + names_of(runs))
                           : "; did you mean " + nearest + "?"));
}

Result<void> write_outcome(const fs::path& directory, const RunOutcome& outcome) {
  return write_file(
      directory / kOutcome,
      Json{{"state", outcome.state}, {"reason", outcome.reason}, {"exit_code", outcome.exit_code}}
              .dump(2, ' ', false, Json::error_handler_t::replace) +
          "\n");
}

void forget_outcome(const fs::path& directory) {
  std::error_code ignored;
  fs::remove(directory / kOutcome, ignored);
}

std::optional<RunOutcome> read_outcome(const fs::path& directory) {
  const auto text = read_text(directory / kOutcome);
  if (!text) return std::nullopt;
  const Json json = Json::parse(*text, nullptr, false);
  if (!json.is_object()) return std::nullopt;
  return RunOutcome{.state = json.value("state", "ended"),
                    .reason = json.value("reason", ""),
                    .exit_code = json.value("exit_code", 1)};
}

}  // namespace troupe::actors
