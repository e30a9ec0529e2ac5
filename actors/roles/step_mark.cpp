// Implements the mark: eight bytes at the file's beginning, little-endian like all that is written
// here.
#include "actors/roles/step_mark.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

namespace troupe::actors {

Result<std::unique_ptr<StepMark>> StepMark::create(const std::filesystem::path& path,
                                                   std::uint64_t steps) {
  std::unique_ptr<StepMark> mark(new StepMark(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, S_IRUSR | S_IWUSR)));
  // The block is there from now on: later writes need no room.
  const int file = mark->file_.get();
  if (file < 0 || ::pwrite(file, &steps, sizeof steps, 0) != sizeof steps)
    return fail(ErrorCode::kIo, path.string() + ": " + std::strerror(errno));
  return mark;
}

void StepMark::set(std::uint64_t steps) const {
  while (::pwrite(file_.get(), &steps, sizeof steps, 0) < 0 && errno == EINTR) {
  }
}

std::optional<std::uint64_t> StepMark::read(const std::filesystem::path& path) {
  const replay::FileHandle file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::uint64_t steps = 0;
  if (file.get() < 0 || ::pread(file.get(), &steps, sizeof steps, 0) != sizeof steps)
    return std::nullopt;
  return steps;
}

std::filesystem::path StepMark::path_of(const std::filesystem::path& folder, std::uint32_t shard,
                                        std::uint32_t incarnation) {
  return folder / ("shard-" + std::to_string(shard) + "." + std::to_string(incarnation) + ".steps");
}

}  // namespace troupe::actors
