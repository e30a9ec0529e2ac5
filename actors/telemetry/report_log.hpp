// evaluations.jsonl: one line for each evaluation of which more is known than its returns,
// {"updates": N, and the report's own keys}: actors/roles/classification_report.hpp. Updates grow
// strictly, over resumes too: opening cuts what lies beyond the restored one. One owner, one
// thread.
#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <string>

#include "actors/telemetry/file_io.hpp"
#include "envs/spec/result.hpp"

namespace troupe::actors::telemetry {

class ReportLog {
 public:
  // kIo: unreadable, or the cut cannot be written.
  static Result<ReportLog> open(std::filesystem::path path, std::int64_t restored_updates);

  // `report` is a JSON object on one line. In memory first: what a full disk refuses is written by
  // a later flush. One that is not beyond the last is left out.
  void add(std::int64_t updates, const std::string& report);
  Result<void> flush();

 private:
  ReportLog(AppendFile file, std::int64_t last) : file_(std::move(file)), last_(last) {}
  AppendFile file_;
  std::int64_t last_;  // updates of the last line, -1: none
  std::deque<std::string> waiting_;
};

}  // namespace troupe::actors::telemetry
