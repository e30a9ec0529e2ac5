// Whole files, written so that a crash leaves the old or the new content, never a part. Any thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "envs/spec/result.hpp"

namespace troupe::actors {

// Through a temporary name, fsync and rename. kIo names the file and the system's reason.
Result<void> write_file(const std::filesystem::path& path, const void* data, std::size_t size);
Result<void> write_file(const std::filesystem::path& path, const std::string& text);
// kNotFound or kIo, with the file's name.
Result<std::vector<std::uint8_t>> read_file(const std::filesystem::path& path);
Result<std::string> read_text(const std::filesystem::path& path);

struct FileSum {
  std::uint64_t bytes = 0;
  std::uint32_t crc32c = 0;
  bool operator==(const FileSum&) const = default;
};
// Size and checksum of a file, read in pieces. O(bytes).
Result<FileSum> sum_of_file(const std::filesystem::path& path);

}  // namespace troupe::actors
