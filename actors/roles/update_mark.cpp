// Implements the mark: two numbers of eight bytes, little-endian like all that is written here.
#include "actors/roles/update_mark.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string>

namespace troupe::actors {
namespace {

using Words = std::array<std::uint64_t, 2>;

}  // namespace

Result<std::unique_ptr<UpdateMark>> UpdateMark::create(const std::filesystem::path& path,
                                                       const ServerLife& life) {
  std::unique_ptr<UpdateMark> mark(new UpdateMark(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, S_IRUSR | S_IWUSR)));
  // The block is there from now on: later writes need no room.
  const Words words = {life.version, life.applied};
  const int file = mark->file_.get();
  if (file < 0 || ::pwrite(file, words.data(), sizeof words, 0) != sizeof words)
    return fail(ErrorCode::kIo, path.string() + ": " + std::strerror(errno));
  return mark;
}

// One call, which a signal that kills does not cut in two.
void UpdateMark::set(const ServerLife& life) const {
  const Words words = {life.version, life.applied};
  while (::pwrite(file_.get(), words.data(), sizeof words, 0) < 0 && errno == EINTR) {
  }
}

std::optional<ServerLife> UpdateMark::read(const std::filesystem::path& path) {
  const replay::FileHandle file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  Words words{};
  if (file.get() < 0 || ::pread(file.get(), words.data(), sizeof words, 0) != sizeof words)
    return std::nullopt;
  return ServerLife{words[0], words[1]};
}

std::filesystem::path UpdateMark::path_of(const std::filesystem::path& folder, std::uint32_t server,
                                          std::uint32_t incarnation) {
  return folder / ("parameter_server-" + std::to_string(server) + "." +
                   std::to_string(incarnation) + ".applied");
}

}  // namespace troupe::actors
