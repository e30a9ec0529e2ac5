// Growing files of a run directory, safe against a crash or a full disk at any
// moment. Errors are kIo and name the path and the system's reason. No thread rule beyond one owner
// per file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "envs/spec/result.hpp"

namespace troupe::actors::telemetry {

// Grows by whole records: one that does not fit is taken back, so the file always ends with a whole
// one.
class AppendFile {
 public:
  explicit AppendFile(std::filesystem::path path) : path_(std::move(path)) {}
  Result<void> append(std::string_view record);
  // What the file was before is cut or kept by its owner; appending continues at `size` bytes.
  void continue_at(std::uint64_t size) { size_ = size; }
  std::uint64_t size() const { return size_; }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  std::uint64_t size_ = 0;
};

}  // namespace troupe::actors::telemetry
