// Whole files: read, and written so that a crash leaves the old file or the new one. Any thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "envs/spec/result.hpp"

namespace troupe {

// Writes to a temporary name beside `path`, fsyncs, renames, fsyncs the folder. kNotFound (no such
// folder) or kIo, naming path and reason; the temporary file is removed then.
Result<void> write_file(const std::filesystem::path& path, std::span<const std::uint8_t> bytes);
Result<void> write_file(const std::filesystem::path& path, std::string_view text);

// A file that is still in memory.
struct FileContent {
  std::string name;  // relative to the folder it will lie in
  std::vector<std::uint8_t> bytes;
};
// Each through write_file, in their order.
Result<void> write_files(const std::filesystem::path& folder, std::span<const FileContent> files);

// Regular files only. kNotFound or kIo, naming path and reason.
Result<std::vector<std::uint8_t>> read_file(const std::filesystem::path& path);
Result<std::string> read_text(const std::filesystem::path& path);

}  // namespace troupe
