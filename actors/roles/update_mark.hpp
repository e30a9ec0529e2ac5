// How many updates a parameter server has applied, in a small file that outlives its process:
// written before an update is answered, read by the coordinator once the process is gone, however
// it died. One writer's thread.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>

#include "actors/roles/server_ledger.hpp"
#include "envs/spec/result.hpp"
#include "replay/file.hpp"

namespace troupe::actors {

class UpdateMark {
 public:
  // An old file of that name is replaced. kIo names the file.
  static Result<std::unique_ptr<UpdateMark>> create(const std::filesystem::path& path,
                                                    const ServerLife& life);

  // Both numbers or neither. Stays when the process is killed, though not when the host is.
  void set(const ServerLife& life) const;

  // nullopt when there is no whole mark.
  static std::optional<ServerLife> read(const std::filesystem::path& path);

  // Of one life of a server: "parameter_server-1.3.applied".
  static std::filesystem::path path_of(const std::filesystem::path& folder, std::uint32_t server,
                                       std::uint32_t incarnation);

 private:
  explicit UpdateMark(int descriptor) : file_(descriptor) {}

  const replay::FileHandle file_;
};

}  // namespace troupe::actors
