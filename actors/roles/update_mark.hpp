// How many updates a parameter server has applied, in a mark that outlives it (count_mark.hpp).
#pragma once

#include <filesystem>
#include <memory>
#include <optional>

#include "actors/roles/count_mark.hpp"
#include "actors/roles/server_ledger.hpp"

namespace troupe::actors {

class UpdateMark {
 public:
  // An old file of that name is replaced. kIo names the file.
  static Result<std::unique_ptr<UpdateMark>> create(const std::filesystem::path& path,
                                                    const ServerLife& life);
  void set(const ServerLife& life) const { mark_->set({life.version, life.applied}); }
  // nullopt when there is no whole mark.
  static std::optional<ServerLife> read(const std::filesystem::path& path);

  // Of one life of a server: "parameter_server-1.3.applied".
  static std::filesystem::path path_of(const std::filesystem::path& folder, std::uint32_t server,
                                       std::uint32_t incarnation);

 private:
  explicit UpdateMark(std::unique_ptr<CountMark<2>> mark) : mark_(std::move(mark)) {}

  const std::unique_ptr<CountMark<2>> mark_;
};

}  // namespace troupe::actors
