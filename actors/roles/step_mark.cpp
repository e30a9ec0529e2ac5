// Implements the mark of steps.
#include "actors/roles/step_mark.hpp"

#include <string>

namespace troupe::actors {

Result<std::unique_ptr<StepMark>> StepMark::create(const std::filesystem::path& path,
                                                   std::uint64_t steps) {
  return CountMark<1>::create(path, {steps}).map([](std::unique_ptr<CountMark<1>> mark) {
    return std::unique_ptr<StepMark>(new StepMark(std::move(mark)));
  });
}

std::optional<std::uint64_t> StepMark::read(const std::filesystem::path& path) {
  const auto counts = CountMark<1>::read(path);
  return counts ? std::optional((*counts)[0]) : std::nullopt;
}

std::filesystem::path StepMark::path_of(const std::filesystem::path& folder, std::uint32_t shard,
                                        std::uint32_t incarnation) {
  return folder / ("shard-" + std::to_string(shard) + "." + std::to_string(incarnation) + ".steps");
}

}  // namespace troupe::actors
