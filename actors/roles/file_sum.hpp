// Size and checksum of a file that stands on the disk. Any thread.
#pragma once

#include <cstdint>
#include <filesystem>

#include "envs/spec/result.hpp"

namespace troupe::actors {

struct FileSum {
  std::uint64_t bytes = 0;
  std::uint32_t crc32c = 0;
  bool operator==(const FileSum&) const = default;
};
// Read in pieces, O(bytes). kNotFound or kIo, naming the file.
Result<FileSum> sum_of_file(const std::filesystem::path& path);

}  // namespace troupe::actors
