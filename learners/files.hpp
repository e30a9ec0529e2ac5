// Whole files: read, and written so that a crash leaves the old file or the new one. Any thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "envs/spec/result.hpp"

namespace troupe::learners {

// Writes to a temporary name beside `path`, fsyncs, renames, fsyncs the folder. kIo names path and
// reason; the temporary file is removed then.
Result<void> write_file(const std::filesystem::path& path, std::span<const std::uint8_t> bytes);

// kNotFound or kIo, naming path and reason.
Result<std::vector<std::uint8_t>> read_file(const std::filesystem::path& path);

}  // namespace troupe::learners
