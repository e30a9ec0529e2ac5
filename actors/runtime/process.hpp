// Child processes: spawned with a log file, a process group of their own and a lifeline (a pipe
// whose end the child sees when its parent dies, even by SIGKILL); reaped by pid, never by "any
// child". A ChildProcess belongs to one thread; different ones may live in different threads.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "envs/spec/result.hpp"

namespace troupe::actors {

struct ProcessOptions {
  std::string name = {};                    // for messages: "environment actor 3"
  std::vector<std::string> arguments = {};  // without the program's own name
  std::string executable = {};              // empty: the running program
  std::vector<std::pair<std::string, std::string>> environment = {};  // added or replaced
  std::string log_file = {};  // stdout and stderr are appended here; empty: inherited
};

// How a process ended.
struct ExitStatus {
  bool known = false;  // false: somebody else reaped it
  int code = 0;        // meaningful when signal is 0
  int signal = 0;
  bool core_dumped = false;

  bool succeeded() const { return known && signal == 0 && code == 0; }
  // "exit code 3", "killed by signal 9 (SIGKILL)", "ended, but its exit status is unknown".
  std::string describe() const;
};

class ChildProcess {
 public:
  // kIo with the reason when the log cannot be opened or the program cannot start.
  static Result<ChildProcess> spawn(const ProcessOptions& options);

  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&& other) noexcept;
  // A child that still runs is killed with SIGKILL and reaped.
  ~ChildProcess();

  const std::string& name() const { return name_; }
  pid_t pid() const { return pid_; }

  // nullopt while it runs; from its end on always the same status.
  std::optional<ExitStatus> poll();
  std::optional<ExitStatus> wait(std::chrono::milliseconds timeout);
  // Sends a signal to the child alone; kNotFound once it ended.
  Result<void> send_signal(int signal);
  // SIGKILL to the child's whole process group.
  void kill();

  // The last lines that this child (not an earlier one with the same file) wrote to its log.
  std::string log_tail(std::size_t lines) const;

 private:
  ChildProcess() = default;
  void release();

  std::string name_;
  std::string log_file_;
  std::int64_t log_start_ = 0;  // the file's size when this child started
  pid_t pid_ = -1;
  int lifeline_ = -1;  // write end; closing it tells the child that its parent is gone
  int pidfd_ = -1;
  std::optional<ExitStatus> status_;
};

// Ends children together: SIGTERM to all, up to `grace` for all of them, SIGKILL to the rest.
// Returns their statuses in order; `killed`, if given, counts those that needed SIGKILL.
std::vector<ExitStatus> stop_children(std::span<ChildProcess* const> children,
                                      std::chrono::milliseconds grace, int* killed = nullptr);

// Up to `lines` last lines of a file from byte `start` on, reading at most its last 64 KiB; empty
// when there is no such file.
std::string tail_of_file(const std::string& path, std::size_t lines, std::int64_t start = 0);

// "SIGTERM" for 15; "signal 99" for what has no name.
std::string signal_name(int signal);

}  // namespace troupe::actors
