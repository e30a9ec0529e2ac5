// The directory of one run: found, locked and prepared. One owner: the process of `troupe run`; a
// second one on the same directory is refused.
#pragma once

#include <filesystem>
#include <string>

#include "actors/cli/commands.hpp"
#include "actors/config/reader.hpp"

namespace troupe::actors {

class RunDirectory {
 public:
  // Makes or opens the directory, takes its lock, and resolves the configuration: of a new run what
  // the command says; of an existing one what is saved there, unless overridden, with each
  // difference logged. kInvalidArgument for bad configurations and for a directory that holds
  // something else.
  static Result<RunDirectory> open(const RunCommand& command);
  RunDirectory(RunDirectory&& other) noexcept;
  RunDirectory& operator=(RunDirectory&&) = delete;
  ~RunDirectory();

  const std::filesystem::path& path() const { return path_; }
  const LoadedConfig& config() const { return config_; }
  // What the run goes by: those of the configuration, epochs turned into updates.
  const RunOptions& options() const { return options_; }
  bool resumed() const { return resumed_; }
  std::string name() const { return path_.filename().string(); }
  // Lines worth telling: differences on resume, renamed keys.
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  RunDirectory() = default;
  std::filesystem::path path_;
  LoadedConfig config_;
  RunOptions options_;
  bool resumed_ = false;
  std::vector<std::string> notes_;
  int lock_ = -1;
};

// A private directory for the run's sockets, removed with this object. Leftovers of runs whose
// process is gone are removed first.
class SocketDirectory {
 public:
  static Result<SocketDirectory> make();
  SocketDirectory(SocketDirectory&& other) noexcept
      : path_(std::exchange(other.path_, {})), lock_(std::exchange(other.lock_, -1)) {}
  SocketDirectory& operator=(SocketDirectory&&) = delete;
  ~SocketDirectory();
  const std::filesystem::path& path() const { return path_; }

 private:
  SocketDirectory() = default;
  std::filesystem::path path_;
  int lock_ = -1;  // says that its owner lives, whatever the numbers of processes say
};

}  // namespace troupe::actors
