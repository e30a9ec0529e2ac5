// See run_files.hpp. One thread at a time.
#include "actors/telemetry/run_files.hpp"

#include <utility>

namespace troupe::actors::telemetry {
namespace {

constexpr std::size_t kMostWaiting = 10000;  // rows: hours of them at one per second

// Writes from the front until one fails; that one stays.
template <class Sink>
Result<void> drain(std::deque<MetricsRow>& waiting, Sink& sink) {
  while (!waiting.empty()) {
    if (auto written = sink.append(waiting.front()); !written) return written;
    waiting.pop_front();
  }
  return {};
}

}  // namespace

Result<RunFiles> RunFiles::open(const std::filesystem::path& directory,
                                std::int64_t restored_actor_steps) {
  auto json = JsonLines::open(directory / "metrics.jsonl", restored_actor_steps);
  if (!json) return tl::unexpected(json.error());
  auto csv = CsvTable::open(directory / "progress.csv", restored_actor_steps);
  if (!csv) return tl::unexpected(csv.error());
  auto evaluations = EvaluationLog::open(directory / "evaluations.npz", restored_actor_steps);
  if (!evaluations) return tl::unexpected(evaluations.error());
  // Of jobs whose clock is the update.
  auto reports = ReportLog::open(directory / "evaluations.jsonl", restored_actor_steps);
  if (!reports) return tl::unexpected(reports.error());
  RunFiles files(std::move(*json), std::move(*csv), std::move(*evaluations), std::move(*reports));
  if (auto flushed = files.flush(); !flushed) return tl::unexpected(flushed.error());
  return files;
}

Result<void> RunFiles::append(MetricsRow row) {
  for (auto* waiting : {&json_waiting_, &csv_waiting_}) {
    waiting->push_back(row);
    if (waiting->size() <= kMostWaiting) continue;
    waiting->pop_front();
    ++counts_.rows_lost;
  }
  return flush();
}

Result<void> RunFiles::add_evaluation(std::int64_t actor_steps, Evaluation evaluation) {
  evaluations_.add(actor_steps, std::move(evaluation));
  return flush();
}

Result<void> RunFiles::add_report(std::int64_t updates, const std::string& report) {
  reports_.add(updates, report);
  return flush();
}

Result<void> RunFiles::flush() {
  const auto json = drain(json_waiting_, json_);
  const auto csv = drain(csv_waiting_, csv_);
  const auto saved = evaluations_.needs_save() ? evaluations_.save() : Result<void>();
  const auto reported = reports_.flush();
  for (const auto& result : {json, csv, saved, reported}) {
    if (!result) ++counts_.write_errors;
  }
  for (const auto& result : {json, csv, saved, reported}) {
    if (!result) return result;
  }
  return {};
}

}  // namespace troupe::actors::telemetry
