// See report_log.hpp. One thread.
#include "actors/telemetry/report_log.hpp"

#include <nlohmann/json.hpp>

#include "envs/spec/files.hpp"

namespace troupe::actors::telemetry {

Result<ReportLog> ReportLog::open(std::filesystem::path path, std::int64_t restored_updates) {
  auto text = read_text(path);
  if (!text && text.error().code != ErrorCode::kNotFound) return tl::unexpected(text.error());
  std::string kept;
  std::int64_t last = -1;
  for (std::size_t begin = 0; text && begin < text->size();) {
    const std::size_t end = text->find('\n', begin);
    if (end == std::string::npos) break;  // half a line, left by a crash
    const std::string line = text->substr(begin, end - begin);
    begin = end + 1;
    const auto json = nlohmann::json::parse(line, nullptr, false);
    if (!json.is_object() || !json.contains("updates") || !json["updates"].is_number_integer())
      return fail(ErrorCode::kCorrupt, "'" + path.string() + "' cannot be continued: \"" +
                                           line.substr(0, 40) + "\" is no evaluation");
    const auto updates = json["updates"].get<std::int64_t>();
    if (updates > restored_updates) break;
    last = updates;
    kept += line + "\n";
  }
  if (text && kept != *text)
    if (auto cut = write_file(path, kept); !cut) return tl::unexpected(cut.error());
  AppendFile file(std::move(path));
  file.continue_at(kept.size());
  return ReportLog(std::move(file), last);
}

void ReportLog::add(std::int64_t updates, const std::string& report) {
  if (updates <= last_ || report.size() < 2) return;
  last_ = updates;
  waiting_.push_back("{\"updates\":" + std::to_string(updates) + "," + report.substr(1) + "\n");
}

Result<void> ReportLog::flush() {
  while (!waiting_.empty()) {
    if (auto written = file_.append(waiting_.front()); !written) return written;
    waiting_.pop_front();
  }
  return {};
}

}  // namespace troupe::actors::telemetry
