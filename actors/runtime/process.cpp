#include "actors/runtime/process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "actors/runtime/lifeline.hpp"

extern char** environ;

namespace troupe::actors {
namespace {

using Milliseconds = std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

// Where the child finds the read end of its lifeline; everything above is closed in the child, so
// that no child holds a file or a sibling's lifeline open.
constexpr int kLifelineDescriptor = 3;
constexpr Milliseconds kPollInterval{5};

class Descriptor {
 public:
  explicit Descriptor(int value) : value_(value) {}
  ~Descriptor() {
    if (value_ >= 0) ::close(value_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return value_; }

 private:
  const int value_;
};

// posix_spawn's two option objects, released together.
struct SpawnPlan {
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  SpawnPlan() {
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&attributes);
  }
  ~SpawnPlan() {
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
  }
  SpawnPlan(const SpawnPlan&) = delete;
  SpawnPlan& operator=(const SpawnPlan&) = delete;
};

// A group of its own keeps the terminal's Ctrl-C for the parent; blocked or ignored signals of the
// parent must not reach a program that never asked for them.
void plan_signals(SpawnPlan& plan) {
  sigset_t none, defaults;
  sigemptyset(&none);
  sigemptyset(&defaults);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGCHLD, SIGUSR1, SIGUSR2})
    sigaddset(&defaults, signal);
  posix_spawnattr_setsigmask(&plan.attributes, &none);
  posix_spawnattr_setsigdefault(&plan.attributes, &defaults);
  posix_spawnattr_setpgroup(&plan.attributes, 0);
  posix_spawnattr_setflags(&plan.attributes,
                           POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
}

void plan_files(SpawnPlan& plan, int log, int lifeline) {
  posix_spawn_file_actions_addopen(&plan.files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  if (log >= 0) {
    posix_spawn_file_actions_adddup2(&plan.files, log, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&plan.files, log, STDERR_FILENO);
  }
  posix_spawn_file_actions_adddup2(&plan.files, lifeline, kLifelineDescriptor);
  posix_spawn_file_actions_addclosefrom_np(&plan.files, kLifelineDescriptor + 1);
}

std::vector<std::string> child_environment(const ProcessOptions& options) {
  auto added = options.environment;
  added.emplace_back(kLifelineVariable, std::to_string(kLifelineDescriptor));
  std::vector<std::string> result;
  for (char** entry = environ; *entry; ++entry) {
    const std::string text = *entry;
    const bool replaced = std::any_of(added.begin(), added.end(), [&](const auto& variable) {
      return text.starts_with(variable.first + "=");
    });
    if (!replaced) result.push_back(text);
  }
  for (const auto& [name, value] : added) result.push_back(name + "=" + value);
  return result;
}

std::vector<char*> pointers_to(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (std::string& text : strings) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

int open_log(const std::string& path) {
  return ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
}

// By its path, so that ps shows that; by the kernel's link once the file was replaced by an update.
std::string running_program() {
  const std::string link = "/proc/self/exe";
  std::error_code error;
  const std::filesystem::path path = std::filesystem::read_symlink(link, error);
  return !error && std::filesystem::exists(path, error) ? path.string() : link;
}

ExitStatus status_from(int wait_status) {
  ExitStatus status;
  status.known = true;
  if (WIFSIGNALED(wait_status)) {
    status.signal = WTERMSIG(wait_status);
    status.core_dumped = WCOREDUMP(wait_status);
  } else {
    status.code = WEXITSTATUS(wait_status);
  }
  return status;
}

}  // namespace

std::string signal_name(int signal) {
  const char* name = sigabbrev_np(signal);
  return name ? std::string("SIG") + name : "signal " + std::to_string(signal);
}

std::string ExitStatus::describe() const {
  if (!known) return "ended, but its exit status is unknown";
  if (signal == 0) return "exit code " + std::to_string(code);
  return "killed by signal " + std::to_string(signal) + " (" + signal_name(signal) + ")" +
         (core_dumped ? ", core dumped" : "");
}

Result<ChildProcess> ChildProcess::spawn(const ProcessOptions& options) {
  const std::string what = "cannot start " + options.name + ": ";
  ChildProcess child;
  child.name_ = options.name;
  child.log_file_ = options.log_file;
  const Descriptor log(options.log_file.empty() ? -1 : open_log(options.log_file));
  if (!options.log_file.empty() && log.get() < 0)
    return fail(ErrorCode::kIo, what + "log file " + options.log_file + ": " + strerror(errno));
  struct stat file {};
  if (log.get() >= 0 && ::fstat(log.get(), &file) == 0) child.log_start_ = file.st_size;
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return fail(ErrorCode::kIo, what + "pipe: " + strerror(errno));
  const Descriptor read_end(ends[0]);
  child.lifeline_ = ends[1];

  SpawnPlan plan;
  plan_signals(plan);
  plan_files(plan, log.get(), read_end.get());
  const std::string program = options.executable.empty() ? running_program() : options.executable;
  std::vector<std::string> arguments{program};
  arguments.insert(arguments.end(), options.arguments.begin(), options.arguments.end());
  std::vector<std::string> environment = child_environment(options);
  const int error = ::posix_spawn(&child.pid_, program.c_str(), &plan.files, &plan.attributes,
                                  pointers_to(arguments).data(), pointers_to(environment).data());
  if (error != 0) {
    child.pid_ = -1;
    return fail(ErrorCode::kIo, what + program + ": " + strerror(error));
  }
  // Where the kernel has no pidfd (before 5.3, some sandboxes), wait() polls instead.
  child.pidfd_ = static_cast<int>(::syscall(SYS_pidfd_open, child.pid_, 0));
  return child;
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept { *this = std::move(other); }

ChildProcess& ChildProcess::operator=(ChildProcess&& other) noexcept {
  if (this == &other) return *this;
  release();
  name_ = std::move(other.name_);
  log_file_ = std::move(other.log_file_);
  log_start_ = other.log_start_;
  pid_ = std::exchange(other.pid_, -1);
  lifeline_ = std::exchange(other.lifeline_, -1);
  pidfd_ = std::exchange(other.pidfd_, -1);
  status_ = std::exchange(other.status_, std::nullopt);
  return *this;
}

ChildProcess::~ChildProcess() { release(); }

void ChildProcess::release() {
  if (pid_ > 0 && !poll()) {
    kill();
    int ignored = 0;
    while (::waitpid(pid_, &ignored, 0) < 0 && errno == EINTR) {
    }
  }
  if (lifeline_ >= 0) ::close(std::exchange(lifeline_, -1));
  if (pidfd_ >= 0) ::close(std::exchange(pidfd_, -1));
  pid_ = -1;
}

std::optional<ExitStatus> ChildProcess::poll() {
  if (status_ || pid_ <= 0) return status_;
  int wait_status = 0;
  const pid_t reaped = ::waitpid(pid_, &wait_status, WNOHANG);
  if (reaped == pid_) status_ = status_from(wait_status);
  if (reaped < 0 && errno == ECHILD) status_ = ExitStatus{};
  return status_;
}

std::optional<ExitStatus> ChildProcess::wait(Milliseconds timeout) {
  const auto deadline = Clock::now() + timeout;
  while (!poll()) {
    const auto left = std::chrono::ceil<Milliseconds>(deadline - Clock::now());
    if (left <= Milliseconds::zero()) return std::nullopt;
    if (pidfd_ >= 0) {
      pollfd item{pidfd_, POLLIN, 0};
      ::poll(&item, 1, static_cast<int>(std::min(left, Milliseconds(60000)).count()));
    } else {
      std::this_thread::sleep_for(std::min(left, kPollInterval));
    }
  }
  return status_;
}

Result<void> ChildProcess::send_signal(int signal) {
  // Not yet reaped, the pid cannot belong to anybody else.
  if (!poll() && pid_ > 0 && ::kill(pid_, signal) == 0) return {};
  return fail(ErrorCode::kNotFound, name_ + " has ended already");
}

void ChildProcess::kill() {
  if (poll() || pid_ <= 0) return;
  ::kill(-pid_, SIGKILL);
}

std::string ChildProcess::log_tail(std::size_t lines) const {
  return log_file_.empty() ? std::string() : tail_of_file(log_file_, lines, log_start_);
}

std::vector<ExitStatus> stop_children(std::span<ChildProcess* const> children, Milliseconds grace,
                                      int* killed) {
  for (ChildProcess* child : children) (void)child->send_signal(SIGTERM);
  const auto deadline = Clock::now() + grace;
  std::vector<ExitStatus> statuses;
  int escalated = 0;
  for (ChildProcess* child : children) {
    const auto left = std::chrono::ceil<Milliseconds>(deadline - Clock::now());
    auto status = child->wait(std::max(left, Milliseconds::zero()));
    if (!status) {
      child->kill();
      ++escalated;
      // Only a process stuck in the kernel (dead disk) outlives SIGKILL; it must not hold up the
      // rest.
      status = child->wait(Milliseconds(5000));
    }
    statuses.push_back(status.value_or(ExitStatus{}));
  }
  if (killed) *killed = escalated;
  return statuses;
}

std::string tail_of_file(const std::string& path, std::size_t lines, std::int64_t start) {
  constexpr std::int64_t kMostBytes = 64 << 10;
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return {};
  const std::int64_t end = file.tellg();
  const std::int64_t from = std::max(std::min(start, end), end - kMostBytes);
  std::string text(static_cast<std::size_t>(end - from), '\0');
  file.seekg(from);
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (lines == 0) return {};
  std::size_t begin = 0;
  std::size_t end_of_line = text.size() - (text.ends_with('\n') ? 1 : 0);
  for (std::size_t found = 0; found < lines; ++found) {
    const std::size_t newline = end_of_line == 0 ? text.npos : text.rfind('\n', end_of_line - 1);
    if (newline == text.npos) return text;
    begin = newline + 1;
    end_of_line = newline;
  }
  return text.substr(begin);
}

}  // namespace troupe::actors
