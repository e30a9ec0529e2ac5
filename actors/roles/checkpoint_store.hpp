// The checkpoints of a run directory: begun as a directory, complete once its manifest stands.
// Owned by the coordinator; one thread.
//
//   checkpoints/step_000012000/{manifest.json, state.json, parts...}   latest -> step_000012000
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "actors/messages/messages.hpp"
#include "envs/spec/files.hpp"
#include "envs/spec/result.hpp"

namespace troupe::actors {

struct CheckpointInfo {
  std::filesystem::path directory;
  std::uint64_t sequence = 0;  // grows with every checkpoint of the run
  std::uint64_t actor_steps = 0;
  std::uint64_t version = 0;
  std::string state_json;  // the coordinator's counters, as committed
};

class CheckpointStore {
 public:
  // `root` is <run>/checkpoints. Directories without a manifest are leftovers of a crash and are
  // removed; each is named to `log`.
  static Result<CheckpointStore> open(std::filesystem::path root, std::int64_t keep,
                                      const std::function<void(const std::string&)>& log);

  // The newest checkpoint whose files all have the size and checksum of the manifest. Bad ones are
  // named to `log` with the file and skipped. O(bytes). nullopt: there is none.
  std::optional<CheckpointInfo> newest_valid(
      const std::function<void(const std::string&)>& log) const;

  // Neither good nor bad ones are there.
  bool empty() const;
  // Makes the directory of a new checkpoint.
  Result<std::filesystem::path> begin(std::uint64_t id, std::uint64_t actor_steps);
  void add_part(std::uint64_t id, const std::vector<FilePart>& files);
  // The steps that the parts really hold, in place of those given to begin().
  void set_actor_steps(std::uint64_t id, std::uint64_t actor_steps);
  // Writes state.json, then the manifest by rename, repoints `latest`, and removes all but the
  // newest `keep` checkpoints and those that are held.
  Result<CheckpointInfo> commit(std::uint64_t id, std::uint64_t version,
                                const std::string& state_json);
  void abandon(std::uint64_t id);
  // The newest one stays until the release, as `reader` is loading it.
  void hold(const std::string& reader);
  void release(const std::string& reader);

  // The newest one committed or found; for restarts within the run.
  const std::optional<CheckpointInfo>& newest() const { return newest_; }
  void set_newest(std::optional<CheckpointInfo> info) { newest_ = std::move(info); }

 private:
  struct Open {
    std::filesystem::path directory;
    std::uint64_t actor_steps = 0;
    std::vector<FilePart> files;
  };
  CheckpointStore(std::filesystem::path root, std::int64_t keep)
      : root_(std::move(root)), keep_(keep) {}
  void prune();

  std::filesystem::path root_;
  std::int64_t keep_;
  std::map<std::uint64_t, Open> open_;
  std::uint64_t next_sequence_ = 1;
  std::optional<CheckpointInfo> newest_;
  std::map<std::string, std::filesystem::path> held_;  // by reader
};

// Reads a manifest, whose last line is the checksum of all before it; checks every file against it
// when `verify`. kCorrupt names the file.
Result<CheckpointInfo> read_checkpoint(const std::filesystem::path& directory, bool verify);

// Writes files into a checkpoint's directory and appends their descriptions. Stops at the first
// that fails: kNotFound or kIo, naming it.
Result<void> write_parts(std::span<const FileContent> files, const std::filesystem::path& directory,
                         std::vector<FilePart>& parts);

}  // namespace troupe::actors
