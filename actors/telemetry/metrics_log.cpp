// See metrics_log.hpp. One thread.
#include "actors/telemetry/metrics_log.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "envs/spec/files.hpp"

namespace troupe::actors::telemetry {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kStepColumn = 2;
const std::vector<std::string> kFixedColumns = {"time", "elapsed", "actor_steps",
                                                "learner_updates"};

Result<std::string> read_or_empty(const fs::path& path) {
  auto content = read_text(path);
  if (!content && content.error().code == ErrorCode::kNotFound) return std::string();
  return content;
}

// Calls `visit` with each line that is ended by a newline, without it.
template <class Visit>
void for_each_line(std::string_view content, Visit visit) {
  for (std::size_t end; (end = content.find('\n')) != std::string_view::npos;) {
    visit(content.substr(0, end));
    content.remove_prefix(end + 1);
  }
}

std::optional<std::int64_t> to_integer(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// What remains of a file of rows, and where it ends.
struct Kept {
  std::string content;
  std::int64_t last = -1;
  void take(std::string_view line, std::optional<std::int64_t> steps, std::int64_t restored) {
    if (!steps || *steps > restored || *steps <= last) return;
    content.append(line).push_back('\n');
    last = *steps;
  }
};

Result<AppendFile> reopen(const fs::path& path, const std::string& before,
                          const std::string& kept) {
  if (kept != before) {
    if (auto replaced = write_file(path, kept); !replaced) return tl::unexpected(replaced.error());
  }
  AppendFile file(path);
  file.continue_at(kept.size());
  // Creates it, so that a directory without permission is noticed at the start.
  if (auto created = file.append(""); !created) return tl::unexpected(created.error());
  return file;
}

std::string to_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  char buffer[32];
  const auto [end, error] = std::to_chars(buffer, buffer + sizeof buffer, value);
  return {buffer, end};
}

std::string quoted(const std::string& cell) {
  if (cell.find_first_of(",\"") == std::string::npos) return cell;
  std::string text = "\"";
  for (const char c : cell) text += c == '"' ? "\"\"" : std::string(1, c);
  return text + "\"";
}

// A name with a line break would end its row early; it gets no column.
bool can_be_column(const std::string& name) {
  return name.find_first_of("\r\n") == std::string::npos;
}

std::vector<std::string> split_csv(std::string_view line) {
  std::vector<std::string> cells(1);
  bool in_quotes = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (c == '"' && in_quotes && i + 1 < line.size() && line[i + 1] == '"') {
      cells.back() += line[++i];
    } else if (c == '"') {
      in_quotes = !in_quotes;
    } else if (c == ',' && !in_quotes) {
      cells.emplace_back();
    } else {
      cells.back() += c;
    }
  }
  return cells;
}

std::string join_csv(const std::vector<std::string>& cells) {
  std::string line;
  for (const std::string& cell : cells) line += quoted(cell) + ',';
  if (!line.empty()) line.back() = '\n';
  return line;
}

std::optional<std::int64_t> steps_of_json(std::string_view line) {
  const auto json = nlohmann::json::parse(line, nullptr, false);
  if (!json.is_object()) return std::nullopt;
  const auto steps = json.find("actor_steps");
  if (steps == json.end() || !steps->is_number_integer()) return std::nullopt;
  return steps->get<std::int64_t>();
}

}  // namespace

Result<JsonLines> JsonLines::open(fs::path path, std::int64_t restored_actor_steps) {
  auto content = read_or_empty(path);
  if (!content) return tl::unexpected(content.error());
  Kept kept;
  for_each_line(*content, [&](std::string_view line) {
    kept.take(line, steps_of_json(line), restored_actor_steps);
  });
  auto file = reopen(path, *content, kept.content);
  if (!file) return tl::unexpected(file.error());
  return JsonLines(std::move(*file), kept.last);
}

Result<void> JsonLines::append(const MetricsRow& row) {
  if (row.actor_steps <= last_) return {};
  nlohmann::ordered_json json = {{"time", row.time},
                                 {"elapsed", row.elapsed},
                                 {"actor_steps", row.actor_steps},
                                 {"learner_updates", row.learner_updates}};
  for (const auto& [name, value] : row.values) {
    if (std::isfinite(value)) {
      json[name] = value;
    } else {
      json[name] = to_text(value);
    }
  }
  const std::string line =
      json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
  auto written = file_.append(line);
  if (written) last_ = row.actor_steps;
  return written;
}

Result<CsvTable> CsvTable::open(fs::path path, std::int64_t restored_actor_steps) {
  auto content = read_or_empty(path);
  if (!content) return tl::unexpected(content.error());
  Kept kept;
  std::vector<std::string> columns;
  for_each_line(*content, [&](std::string_view line) {
    const auto cells = split_csv(line);
    if (columns.empty()) {
      columns = cells;
      kept.content = std::string(line) + "\n";
    } else if (cells.size() == columns.size() && cells.size() > kStepColumn) {
      kept.take(line, to_integer(cells[kStepColumn]), restored_actor_steps);
    }
  });
  if (!columns.empty() &&
      !std::equal(kFixedColumns.begin(), kFixedColumns.end(), columns.begin(),
                  columns.begin() + static_cast<std::ptrdiff_t>(
                                        std::min(columns.size(), kFixedColumns.size())))) {
    return fail(ErrorCode::kCorrupt,
                "'" + path.string() +
                    "' does not begin with the columns time, elapsed, actor_steps, "
                    "learner_updates: move it away to go on");
  }
  auto file = reopen(path, *content, kept.content);
  if (!file) return tl::unexpected(file.error());
  return CsvTable(std::move(*file), std::move(columns), kept.last);
}

Result<void> CsvTable::widen(const std::vector<std::string>& columns) {
  auto content = read_or_empty(file_.path());
  if (!content) return tl::unexpected(content.error());
  std::string wider = join_csv(columns);
  const std::string filling(columns.size() - columns_.size(), ',');
  bool is_header = true;
  for_each_line(std::string_view(*content).substr(0, file_.size()), [&](std::string_view line) {
    if (!is_header) wider.append(line).append(filling).push_back('\n');
    is_header = false;
  });
  if (auto replaced = write_file(file_.path(), wider); !replaced) return replaced;
  file_.continue_at(wider.size());
  columns_ = columns;
  return {};
}

Result<void> CsvTable::append(const MetricsRow& row) {
  if (row.actor_steps <= last_) return {};
  std::vector<std::string> columns = columns_.empty() ? kFixedColumns : columns_;
  for (const auto& [name, unused] : row.values) {
    const bool known = std::find(columns.begin(), columns.end(), name) != columns.end();
    if (!known && can_be_column(name)) columns.push_back(name);
  }
  // A file that somebody deleted gets its header again.
  std::error_code ignored;
  if (columns.size() > columns_.size() || !fs::exists(file_.path(), ignored)) {
    if (auto widened = widen(columns); !widened) return widened;
  }
  std::vector<std::string> cells = {to_text(row.time), to_text(row.elapsed),
                                    std::to_string(row.actor_steps),
                                    std::to_string(row.learner_updates)};
  for (std::size_t i = kFixedColumns.size(); i < columns_.size(); ++i) {
    const auto value = row.values.find(columns_[i]);
    cells.push_back(value == row.values.end() ? "" : to_text(value->second));
  }
  auto written = file_.append(join_csv(cells));
  if (written) last_ = row.actor_steps;
  return written;
}

}  // namespace troupe::actors::telemetry
