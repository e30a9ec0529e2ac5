// Counts in a small file that outlives its process: written before what they count is acknowledged,
// read by the coordinator once the process is gone, however it died, because its last report is
// older than its last acknowledgement. Eight bytes a count, little-endian like all that is written
// here. One writer's thread.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>

#include "envs/spec/result.hpp"
#include "replay/file.hpp"

namespace troupe::actors {

template <std::size_t N>
class CountMark {
 public:
  using Counts = std::array<std::uint64_t, N>;

  // An old file of that name is replaced. kIo names the file.
  static Result<std::unique_ptr<CountMark>> create(const std::filesystem::path& path,
                                                   const Counts& counts) {
    std::unique_ptr<CountMark> mark(new CountMark(
        ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, S_IRUSR | S_IWUSR)));
    // The block is there from now on: later writes need no room.
    const int file = mark->file_.get();
    if (file < 0 || ::pwrite(file, counts.data(), sizeof counts, 0) != sizeof counts)
      return fail(ErrorCode::kIo, path.string() + ": " + std::strerror(errno));
    return mark;
  }

  // All counts or none: one call, which a signal that kills does not cut in two. Stays when the
  // process is killed, though not when the host is.
  void set(const Counts& counts) const {
    while (::pwrite(file_.get(), counts.data(), sizeof counts, 0) < 0 && errno == EINTR) {
    }
  }

  // nullopt when there is no whole mark.
  static std::optional<Counts> read(const std::filesystem::path& path) {
    const replay::FileHandle file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    Counts counts{};
    if (file.get() < 0 || ::pread(file.get(), counts.data(), sizeof counts, 0) != sizeof counts)
      return std::nullopt;
    return counts;
  }

 private:
  explicit CountMark(int descriptor) : file_(descriptor) {}

  const replay::FileHandle file_;
};

}  // namespace troupe::actors
