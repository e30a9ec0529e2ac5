// A file whose lock says that the process which wrote it lives: the kernel lets go of it however
// that process ends, so nothing is taken for dead that is not, in no container and after no reuse
// of process numbers. One owner.
#pragma once

#include <filesystem>
#include <string_view>
#include <utility>

#include "envs/spec/result.hpp"

namespace troupe::actors {

class HeldFile {
 public:
  // Writes `text` under `path` with mode 0600, for nobody else to read; an older file of that name
  // is replaced. It is there whole and held, or not at all. kIo names path and reason.
  static Result<HeldFile> create(std::filesystem::path path, std::string_view text);
  HeldFile(HeldFile&& other) noexcept
      : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)) {}
  HeldFile& operator=(HeldFile&&) = delete;
  // Removes the file.
  ~HeldFile();

 private:
  HeldFile(std::filesystem::path path, int descriptor)
      : path_(std::move(path)), descriptor_(descriptor) {}

  std::filesystem::path path_;
  int descriptor_;
};

// Whether the process that wrote the file lives. One that is not there is held by nobody.
bool is_held(const std::filesystem::path& path);

}  // namespace troupe::actors
