// What telemetry leaves in a run directory: metrics.jsonl, progress.csv, evaluations.npz and, of
// jobs on pictures, evaluations.jsonl kept up while the run goes on, and the small files
// versions.json, command.txt and telemetry.json. A disk that fails in mid-run never stops it: rows
// wait here, are written when the disk recovers, and losses are counted. Owned by the telemetry
// hub; one thread at a time.
#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "actors/telemetry/evaluation_log.hpp"
#include "actors/telemetry/metrics_log.hpp"
#include "actors/telemetry/report_log.hpp"
#include "envs/spec/result.hpp"

namespace troupe::actors::telemetry {

class RunFiles {
 public:
  // Rows and evaluations beyond `restored_actor_steps` are cut (0 in a new run, kKeepAll to cut
  // nothing). The directory exists. Errors name the file: unreadable, not writable, or (kCorrupt)
  // not ours.
  static Result<RunFiles> open(const std::filesystem::path& directory,
                               std::int64_t restored_actor_steps);

  // Ok when all that waits is on disk; otherwise the first reason, and a later call tries again.
  Result<void> append(MetricsRow row);
  Result<void> add_evaluation(std::int64_t actor_steps, Evaluation evaluation);
  // What else is known of an evaluation, as one line of JSON.
  Result<void> add_report(std::int64_t updates, const std::string& report);
  // Tries again without anything new; for the end of a run.
  Result<void> flush();

  const std::vector<EvaluationLog::Entry>& evaluations() const { return evaluations_.entries(); }
  struct Counts {
    std::uint64_t write_errors = 0;  // failed attempts
    std::uint64_t rows_lost = 0;     // rows dropped because too many waited
  };
  const Counts& counts() const { return counts_; }

 private:
  RunFiles(JsonLines json, CsvTable csv, EvaluationLog evaluations, ReportLog reports)
      : json_(std::move(json)),
        csv_(std::move(csv)),
        evaluations_(std::move(evaluations)),
        reports_(std::move(reports)) {}
  JsonLines json_;
  CsvTable csv_;
  EvaluationLog evaluations_;
  ReportLog reports_;
  std::deque<MetricsRow> json_waiting_, csv_waiting_;
  Counts counts_;
};

// versions.json: a list of {"time", "versions": {library: version}}, one entry per change.
Result<void> record_versions(const std::filesystem::path& directory,
                             const std::map<std::string, std::string>& versions, double unix_time);

// command.txt: one shell-quoted line per start of the run, after a comment with the UTC time.
Result<void> record_command(const std::filesystem::path& directory,
                            const std::vector<std::string>& arguments, double unix_time);

// telemetry.json: where the live run of this directory can be watched.
struct Announcement {
  std::string run{}, endpoint{}, snapshot_endpoint{};
  std::int64_t pid = 0;
  std::uint64_t process_start =
      0;  // tells a recycled pid apart; see announcement_of_this_process()
};
Announcement announcement_of_this_process(std::string run, std::string endpoint,
                                          std::string snapshot_endpoint);
Result<void> announce(const std::filesystem::path& directory, const Announcement& announcement);
// Leaves no trace; a missing file is no error.
void withdraw_announcement(const std::filesystem::path& directory);
Result<Announcement> read_announcement(const std::filesystem::path& directory);
// Its process still lives on this host.
bool is_alive(const Announcement& announcement);
// The most recently announced live run among the subdirectories of `runs`; kNotFound: none.
Result<Announcement> newest_live_run(const std::filesystem::path& runs);

}  // namespace troupe::actors::telemetry
