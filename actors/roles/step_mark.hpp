// How many steps a shard has inserted, in a mark that outlives it (count_mark.hpp).
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>

#include "actors/roles/count_mark.hpp"

namespace troupe::actors {

class StepMark {
 public:
  // Begins with `steps`; an old file of that name is replaced. kIo names the file.
  static Result<std::unique_ptr<StepMark>> create(const std::filesystem::path& path,
                                                  std::uint64_t steps);
  void set(std::uint64_t steps) const { mark_->set({steps}); }
  // nullopt when there is no whole mark.
  static std::optional<std::uint64_t> read(const std::filesystem::path& path);

  // Of one life of a shard: "shard-1.3.steps".
  static std::filesystem::path path_of(const std::filesystem::path& folder, std::uint32_t shard,
                                       std::uint32_t incarnation);

 private:
  explicit StepMark(std::unique_ptr<CountMark<1>> mark) : mark_(std::move(mark)) {}

  const std::unique_ptr<CountMark<1>> mark_;
};

}  // namespace troupe::actors
