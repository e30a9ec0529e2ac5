// How many steps a shard has inserted, in a small file that outlives its process: written before a
// step is acknowledged, read by the coordinator once the process is gone, however it died, because
// the shard's last report is older than its last acknowledgement. One writer's thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>

#include "envs/spec/result.hpp"
#include "replay/file.hpp"

namespace troupe::actors {

class StepMark {
 public:
  // Begins with `steps`; an old file of that name is replaced. kIo names the file.
  static Result<std::unique_ptr<StepMark>> create(const std::filesystem::path& path,
                                                  std::uint64_t steps);

  // Stays when the process is killed, though not when the host is.
  void set(std::uint64_t steps) const;

  // nullopt when there is no whole mark.
  static std::optional<std::uint64_t> read(const std::filesystem::path& path);

  // Of one life of a shard: "shard-1.3.steps".
  static std::filesystem::path path_of(const std::filesystem::path& folder, std::uint32_t shard,
                                       std::uint32_t incarnation);

 private:
  explicit StepMark(int descriptor) : file_(descriptor) {}

  const replay::FileHandle file_;
};

}  // namespace troupe::actors
