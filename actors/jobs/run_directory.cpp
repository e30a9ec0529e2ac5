// Implements run and socket directories.
#include "actors/jobs/run_directory.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "actors/config/checks.hpp"
#include "actors/config/printer.hpp"
#include "actors/config/resume.hpp"
#include "actors/roles/picture_data.hpp"
#include "actors/roles/prefill.hpp"
#include "envs/action_map.hpp"
#include "envs/registry.hpp"
#include "envs/spec/files.hpp"

namespace troupe::actors {

namespace fs = std::filesystem;

namespace {

constexpr const char* kConfig = "config.yaml";

tl::unexpected<Error> refuse(std::string message) {
  return fail(ErrorCode::kInvalidArgument, std::move(message));
}

Result<int> take_lock(const fs::path& path) {
  const fs::path file = path / "lock";
  const int lock = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (lock < 0)
    return fail(ErrorCode::kIo, "cannot write in the run directory " + path.string() + ": " +
                                    std::strerror(errno) + "; choose another with --run-directory");
  if (::flock(lock, LOCK_EX | LOCK_NB) != 0) {
    std::array<char, 32> owner{};
    const bool known = ::pread(lock, owner.data(), owner.size() - 1, 0) > 0;
    ::close(lock);
    const std::string name = path.filename().string();
    return fail(ErrorCode::kUnavailable,
                (known ? "process " + std::string(owner.data()) : std::string("another process")) +
                    " runs " + name + " in " + path.string() + "; `troupe stop " + path.string() +
                    "` ends it, --run-directory chooses another place");
  }
  const std::string owner = std::to_string(::getpid());
  if (::ftruncate(lock, 0) == 0) [[maybe_unused]]
    const auto told = ::pwrite(lock, owner.data(), owner.size(), 0);
  return lock;
}

// Whoever has it open and locked lives; a directory that is not there any more is nobody's. -1: not
// to be had.
int lock_directory(const fs::path& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
  struct stat found {};
  if (descriptor >= 0 && ::flock(descriptor, LOCK_EX | LOCK_NB) == 0 &&
      ::fstat(descriptor, &found) == 0 && found.st_nlink > 0)
    return descriptor;
  if (descriptor >= 0) ::close(descriptor);
  return -1;
}

// Opened once here, so that a file of another environment is refused before anything is written.
// Its episodes are read by the shards.
Result<void> check_prefill(const RunOptions& options, const EnvSpec& spec) {
  if (options.replay.prefill.empty()) return {};
  if (auto source = open_episodes(options.replay.prefill, spec); !source)
    return refuse("replay.prefill: " + source.error().message);
  return {};
}

// Opened once here, so that sets that no node could read are refused before anything is written.
// How many pictures there are to learn from.
Result<std::int64_t> check_pictures(const RunOptions& options) {
  const auto sets = open_checked_pictures(options);
  if (!sets) return refuse(sets.error().message);
  return sets->training->size();
}

// Made once here, so that a task that no node could make is refused before anything is written.
// Returns the pictures of a job that learns from such, else 0.
Result<std::int64_t> check_world(const RunOptions& options, bool is_new) {
  if (learns_from_pictures(options)) return check_pictures(options);
  auto env =
      envs::make_env(options.environment.name, {.time_limit = options.environment.time_limit});
  if (!env) return refuse("environment.name: " + env.error().message);
  const EnvSpec& spec = (*env)->spec();
  if (const auto map = envs::ActionMap::make(spec.action, spec.name); !map)
    return refuse("environment.name: " + map.error().message);
  if (is_new)
    if (auto good = check_prefill(options, spec); !good) return tl::unexpected(good.error());
  return 0;
}

}  // namespace

RunDirectory::RunDirectory(RunDirectory&& other) noexcept
    : path_(std::move(other.path_)),
      config_(std::move(other.config_)),
      options_(std::move(other.options_)),
      resumed_(other.resumed_),
      notes_(std::move(other.notes_)),
      lock_(std::exchange(other.lock_, -1)) {}

RunDirectory::~RunDirectory() {
  if (lock_ >= 0) ::close(lock_);
}

Result<RunDirectory> RunDirectory::open(const RunCommand& command) {
  auto given = load_config(command.config, command.overrides);
  if (!given) return tl::unexpected(given.error());
  RunDirectory directory;
  directory.path_ = command.run_directory
                        ? *command.run_directory
                        : fs::path("runs") / (command.config.stem().string() + "_seed" +
                                              std::to_string(given->options.seed));
  directory.path_ = fs::absolute(directory.path_).lexically_normal();
  if (!directory.path_.has_filename()) directory.path_ = directory.path_.parent_path();
  const fs::path saved = directory.path_ / kConfig;
  std::error_code error;
  directory.resumed_ = fs::exists(saved, error);
  if (!directory.resumed_ && fs::exists(directory.path_, error) &&
      !(fs::is_directory(directory.path_, error) && fs::is_empty(directory.path_, error)) &&
      !fs::exists(directory.path_ / "lock", error))
    return refuse(directory.path_.string() +
                  " exists and is not a run directory; choose another with --run-directory");
  Result<std::int64_t> pictures = 0;
  if (!directory.resumed_) {
    pictures = check_world(given->options, true);
    if (!pictures) return tl::unexpected(pictures.error());
  }
  fs::create_directories(directory.path_ / "log", error);
  if (error)
    return fail(ErrorCode::kIo, "cannot create the run directory " + directory.path_.string() +
                                    ": " + error.message());
  auto lock = take_lock(directory.path_);
  if (!lock) return tl::unexpected(lock.error());
  directory.lock_ = *lock;

  if (directory.resumed_) {
    auto resumed = resume_config(saved, command.config, command.overrides);
    if (!resumed) return tl::unexpected(resumed.error());
    directory.config_ = std::move(resumed->config);
    directory.notes_ = std::move(resumed->lines);
  } else {
    directory.config_ = std::move(*given);
    // Nodes and later starts of the run may stand in other folders.
    RunOptions& options = directory.config_.options;
    for (std::string* path :
         {&options.replay.prefill, &options.data.set.path, &options.data.set.evaluation_path})
      if (!path->empty()) *path = fs::absolute(*path).lexically_normal().string();
  }
  if (directory.resumed_) {
    pictures = check_world(directory.config_.options, false);
    if (!pictures) return tl::unexpected(pictures.error());
  }
  directory.options_ = with_epochs_as_updates(directory.config_.options, *pictures);
  directory.notes_.insert(directory.notes_.end(), directory.config_.notes.begin(),
                          directory.config_.notes.end());
  if (auto written = write_file(saved, print_yaml(directory.config_.options)); !written)
    return tl::unexpected(written.error());
  return directory;
}

Result<SocketDirectory> SocketDirectory::make() {
  std::error_code error;
  const fs::path root = fs::temp_directory_path(error);
  if (error) return fail(ErrorCode::kIo, "no directory for temporary files: " + error.message());
  const std::string prefix = "troupe-" + std::to_string(::getuid()) + "-";
  for (const auto& entry : fs::directory_iterator(root, error)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(prefix) || std::atol(name.c_str() + prefix.size()) <= 0) continue;
    const int abandoned = lock_directory(entry.path());
    if (abandoned < 0) continue;
    std::error_code ignored;
    fs::remove_all(entry.path(), ignored);
    ::close(abandoned);
  }
  // Another run may take one that is not locked yet for abandoned.
  for (int tried = 0; tried < 100; ++tried) {
    std::string pattern = (root / (prefix + std::to_string(::getpid()) + "-XXXXXX")).string();
    if (::mkdtemp(pattern.data()) == nullptr)  // mode 0700: other users cannot connect
      return fail(ErrorCode::kIo, "cannot create " + pattern + ": " + std::strerror(errno));
    SocketDirectory directory;
    directory.path_ = pattern;
    directory.lock_ = lock_directory(pattern);
    if (directory.lock_ >= 0) return directory;
  }
  return fail(ErrorCode::kIo, "cannot keep a directory for sockets in " + root.string());
}

SocketDirectory::~SocketDirectory() {
  std::error_code error;
  if (!path_.empty()) fs::remove_all(path_, error);
  if (lock_ >= 0) ::close(lock_);
}

}  // namespace troupe::actors
