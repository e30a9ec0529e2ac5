// Implements the mark of updates.
#include "actors/roles/update_mark.hpp"

#include <string>

namespace troupe::actors {

Result<std::unique_ptr<UpdateMark>> UpdateMark::create(const std::filesystem::path& path,
                                                       const ServerLife& life) {
  return CountMark<2>::create(path, {life.version, life.applied})
      .map([](std::unique_ptr<CountMark<2>> mark) {
        return std::unique_ptr<UpdateMark>(new UpdateMark(std::move(mark)));
      });
}

std::optional<ServerLife> UpdateMark::read(const std::filesystem::path& path) {
  const auto counts = CountMark<2>::read(path);
  return counts ? std::optional(ServerLife{(*counts)[0], (*counts)[1]}) : std::nullopt;
}

std::filesystem::path UpdateMark::path_of(const std::filesystem::path& folder, std::uint32_t server,
                                          std::uint32_t incarnation) {
  return folder / ("parameter_server-" + std::to_string(server) + "." +
                   std::to_string(incarnation) + ".applied");
}

}  // namespace troupe::actors
