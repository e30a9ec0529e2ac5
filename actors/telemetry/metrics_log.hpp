// metrics.jsonl and progress.csv: one row per report of the hub, in two shapes. Each file's rows
// have strictly growing actor_steps, over resumes too: opening cuts what lies beyond the restored
// step (and half a row at the end, left by a crash). One owner per run directory, one thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "actors/telemetry/file_io.hpp"
#include "actors/telemetry/hub.hpp"
#include "envs/spec/result.hpp"

namespace troupe::actors::telemetry {

// Opens with it to keep every row.
inline constexpr std::int64_t kKeepAll = std::numeric_limits<std::int64_t>::max();

// {"time": …, "elapsed": …, "actor_steps": …, "learner_updates": …, "<name>": …} per line; NaN and
// infinities as the strings "nan", "inf" and "-inf".
class JsonLines {
 public:
  // Reads the file once: O(size). kIo: unreadable, or the cut cannot be written.
  static Result<JsonLines> open(std::filesystem::path path, std::int64_t restored_actor_steps);
  // A row that is not beyond the last one is left out, which is no error.
  Result<void> append(const MetricsRow& row);

 private:
  JsonLines(AppendFile file, std::int64_t last) : file_(std::move(file)), last_(last) {}
  AppendFile file_;
  std::int64_t last_;  // actor_steps of the last row, -1: none
};

// Columns keep their order for ever: time, elapsed, actor_steps, learner_updates, then every name
// in the order it first appeared. A new name rewrites the file with a longer header (O(size),
// rare); a name without a value leaves its cell empty. RFC 4180 quoting; "nan", "inf", "-inf" as
// readers expect them.
class CsvTable {
 public:
  static Result<CsvTable> open(std::filesystem::path path, std::int64_t restored_actor_steps);
  Result<void> append(const MetricsRow& row);
  const std::vector<std::string>& columns() const { return columns_; }

 private:
  CsvTable(AppendFile file, std::vector<std::string> columns, std::int64_t last)
      : file_(std::move(file)), columns_(std::move(columns)), last_(last) {}
  Result<void> widen(const std::vector<std::string>& columns);
  AppendFile file_;
  std::vector<std::string> columns_;
  std::int64_t last_;
};

}  // namespace troupe::actors::telemetry
