// See text.hpp. Pure functions.
#include "actors/telemetry/text.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

namespace troupe::actors::telemetry {
namespace {

bool begins_code_point(char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }

std::string braille(unsigned dots) {
  const unsigned code = 0x2800 + dots;
  return {static_cast<char>(0xE0 | (code >> 12)), static_cast<char>(0x80 | ((code >> 6) & 0x3F)),
          static_cast<char>(0x80 | (code & 0x3F))};
}

struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();
  void include(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  // 0 … cells-1; the middle when all values are equal.
  std::size_t cell(double value, std::size_t cells) const {
    if (!(high > low)) return cells / 2;
    const double place =
        (value / 2 - low / 2) / (high / 2 - low / 2) * static_cast<double>(cells - 1);
    return std::min(cells - 1, static_cast<std::size_t>(std::lround(place)));
  }
};

// "412 of 1.00k (41 %)", or the plain number when there is no target.
std::string of_target(std::int64_t value, std::int64_t target) {
  const std::string text = format_number(static_cast<double>(value));
  if (target <= 0) return text;
  const double share = static_cast<double>(value) / static_cast<double>(target);
  return text + "/" + format_number(static_cast<double>(target)) + " (" + format_share(share) + ")";
}

void add_known(std::vector<std::string>& fields, const std::string& label, double value,
               const std::string& unit = "") {
  if (!std::isnan(value)) fields.push_back(label + format_number(value) + unit);
}

}  // namespace

std::string format_duration(double seconds) {
  if (!std::isfinite(seconds)) return "-";
  const auto whole = static_cast<long long>(std::clamp(seconds, 0.0, 1e12) + 0.5);
  char text[48];
  if (whole < 3600) {
    std::snprintf(text, sizeof text, "%lld:%02lld", whole / 60, whole % 60);
  } else {
    std::snprintf(text, sizeof text, "%lld:%02lld:%02lld", whole / 3600, whole / 60 % 60,
                  whole % 60);
  }
  return text;
}

std::string format_number(double value) {
  if (std::isnan(value)) return "-";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  const char* unit = "";
  double shown = value;
  for (const char* next : {"k", "M", "G", "T"}) {
    if (std::abs(shown) < 999.5) break;
    shown /= 1000;
    unit = next;
  }
  const double size = std::abs(shown);
  const bool is_whole = *unit == '\0' && shown == std::floor(shown);
  const int digits = is_whole || size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2;
  char text[48];
  if (size != 0 && size < 0.005) {
    std::snprintf(text, sizeof text, "%.1e", shown);
  } else if (size >= 1e6) {
    std::snprintf(text, sizeof text, "%.2e", value);
  } else {
    std::snprintf(text, sizeof text, "%.*f%s", digits, shown, unit);
  }
  return text;
}

std::string format_share(double share) {
  if (std::isnan(share)) return "-";
  return std::to_string(std::lround(std::clamp(share, -10.0, 100.0) * 100)) + " %";
}

std::size_t columns_of(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), begins_code_point));
}

std::string clip(std::string_view text, std::size_t columns) {
  if (columns_of(text) <= columns) return std::string(text);
  if (columns == 0) return "";
  std::size_t seen = 0, end = 0;
  for (; end < text.size(); ++end) {
    if (begins_code_point(text[end]) && seen++ == columns - 1) break;
  }
  return std::string(text.substr(0, end)) + ">";
}

std::string pad(std::string_view text, std::size_t columns) {
  std::string padded = clip(text, columns);
  padded.append(columns - columns_of(padded), ' ');
  return padded;
}

std::vector<std::string> plot(const Points& points, std::size_t columns, std::size_t rows,
                              bool unicode) {
  if (columns == 0 || rows == 0) return {};
  const std::size_t across = unicode ? 2 : 1, down = unicode ? 4 : 1;
  // Dots of one cell in braille's own order: bit of [row][column].
  constexpr unsigned kBits[4][2] = {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};
  Range x_range, y_range;
  for (const auto& [x, y] : points) {
    if (!std::isfinite(x) || !std::isfinite(y)) continue;
    x_range.include(x);
    y_range.include(y);
  }
  std::vector<std::vector<unsigned>> cells(rows, std::vector<unsigned>(columns, 0));
  for (const auto& [x, y] : points) {
    if (!std::isfinite(x) || !std::isfinite(y)) continue;
    const std::size_t column = x_range.cell(x, columns * across);
    const std::size_t row = rows * down - 1 - y_range.cell(y, rows * down);
    cells[row / down][column / across] |= unicode ? kBits[row % 4][column % 2] : 1;
  }
  std::vector<std::string> lines;
  for (const auto& row : cells) {
    std::string line;
    for (const unsigned dots : row) {
      line += dots == 0 ? " " : unicode ? braille(dots) : "*";
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

std::string describe_waits(const std::vector<Wait>& waits) {
  std::string text;
  for (const Wait& wait : waits) {
    std::string role = wait.role;
    std::replace(role.begin(), role.end(), '_', ' ');
    if (!text.empty()) text += ", ";
    text += role + " on " + wait.on;
    if (!std::isnan(wait.share)) text += " " + format_share(wait.share);
  }
  return text;
}

std::string progress_line(const RunStatus& status, std::int64_t actor_steps,
                          std::int64_t learner_updates, std::size_t columns) {
  std::vector<std::string> fields;
  std::string time = format_duration(status.elapsed);
  if (!std::isnan(status.eta) && !is_final(status)) time += " ETA " + format_duration(status.eta);
  fields.push_back(status.state == "running" ? time : status.state + " " + time);
  fields.push_back("steps " + of_target(actor_steps, status.target_actor_steps));
  add_known(fields, "eval ", status.evaluation_return);
  add_known(fields, "return ", status.recent_return);
  add_known(fields, "", status.steps_per_second, " steps/s");
  add_known(fields, "", status.updates_per_second, " updates/s");
  if (!std::isnan(status.samples_per_insert) || !std::isnan(status.samples_per_insert_configured)) {
    std::string ratio = "SPI " + format_number(status.samples_per_insert);
    if (!std::isnan(status.samples_per_insert_configured)) {
      ratio += "/" + format_number(status.samples_per_insert_configured);
    }
    fields.push_back(ratio);
  }
  add_known(fields, "lag ", status.policy_lag);
  const std::string waits = describe_waits(status.waits);
  if (!waits.empty()) fields.push_back("waits: " + waits);
  if (learner_updates > 0)
    fields.push_back("updates " + of_target(learner_updates, status.target_updates));

  std::string line = clip(fields.front(), columns);
  for (std::size_t i = 1; i < fields.size(); ++i) {
    const std::string longer = line + "  " + fields[i];
    if (columns_of(longer) > columns) break;
    line = longer;
  }
  return line;
}

}  // namespace troupe::actors::telemetry
