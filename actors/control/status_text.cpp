// Implements the table of nodes and what stands above it.
#include "actors/control/status_text.hpp"

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

#include "actors/telemetry/text.hpp"

namespace troupe::actors {
namespace {

using Json = nlohmann::json;

std::string number(const Json& json, const char* key) {
  return json.contains(key) && json.at(key).is_number_integer()
             ? std::to_string(json.at(key).get<std::int64_t>())
             : "-";
}

// Rows of cells as lines in which columns are as wide as their widest cell.
std::string table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths(rows.front().size());
  for (const auto& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i)
      widths[i] = std::max(widths[i], telemetry::columns_of(row[i]));
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i)
      line += i + 1 < row.size() ? telemetry::pad(row[i], widths[i]) + "  " : row[i];
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string state_of(const Json& node) {
  std::string state = node.at("state").get<std::string>();
  if (const auto wait = node.value("restart_in_ms", std::int64_t{0}); wait > 0)
    state += " in " + telemetry::format_number(static_cast<double>(wait) / 1000) + " s";
  return state;
}

std::string waits_of(const Json& node) {
  if (const auto busy = node.value("busy_ms", std::uint64_t{0}); busy >= 1000)
    return "in " + node.value("busy_with", "") + " for " + std::to_string(busy / 1000) + " s";
  return node.value("waiting_on", "");
}

std::string restarts_of(const Json& node) {
  const auto& restarts = node.at("restarts");
  return std::to_string(restarts.at("left").get<std::int64_t>()) + " of " +
         std::to_string(restarts.at("allowed").get<std::int64_t>());
}

std::string nodes_of(const Json& status) {
  std::vector<std::vector<std::string>> rows{{"NODE", "HOST", "ROLE", "STATE", "PID", "LIFE",
                                              "VERSION", "LAG", "RESTARTS LEFT", "WAITS ON"}};
  for (const Json& node : status.at("nodes"))
    rows.push_back({node.at("name"), node.at("host"), node.at("role"), state_of(node),
                    number(node, "pid"), number(node, "incarnation"), number(node, "version"),
                    number(node, "lag"), restarts_of(node), waits_of(node)});
  return table(rows);
}

std::string counts_of(const Json& status) {
  std::string text;
  for (const auto& [role, count] : status.at("counts").items()) {
    text += (text.empty() ? "" : ", ") + role + " " + number(count, "ready") + "/" +
            number(count, "wanted");
    if (count.contains("max"))
      text += " (" + number(count, "min") + " to " + number(count, "max") + ")";
  }
  return text;
}

std::string line_of(const Json& status) {
  std::string text = status.at("run").get<std::string>() + "  " +
                     status.at("state").get<std::string>() + "  pid " + number(status, "pid") +
                     "  " + number(status, "actor_steps") + " steps, " + number(status, "version") +
                     " updates in " +
                     telemetry::format_duration(status.at("wall_seconds").get<double>());
  if (const std::string reason = status.value("reason", ""); !reason.empty()) text += "  " + reason;
  return text;
}

std::string text_of(const Json& status) {
  const Json& ledger = status.at("ledger");
  std::string text = line_of(status) + "\n" + status.at("directory").get<std::string>() + "\n";
  if (ledger.at("inserted").get<std::uint64_t>() + ledger.at("prefilled").get<std::uint64_t>() > 0)
    text += "steps: " + number(ledger, "inserted") + " inserted + " + number(ledger, "prefilled") +
            " prefilled = " + number(ledger, "held") + " held + " + number(ledger, "removed") +
            " removed + " + number(ledger, "lost_with_shard") + " lost with shards\n";
  const Json& checkpoint = status.at("checkpoint");
  text += "checkpoint: " + checkpoint.value("newest", std::string("none yet"));
  if (const std::string error = checkpoint.value("error", ""); !error.empty())
    text += "; the last one was not written: " + error;
  return text + "\n" + counts_of(status) + "\n\n" + nodes_of(status);
}

template <class Format>
std::string formatted(const std::string& text, Format format) {
  try {
    return format(Json::parse(text));
  } catch (const Json::exception&) {
    return text;
  }
}

}  // namespace

std::string status_text(const std::string& json) { return formatted(json, text_of); }
std::string status_line(const std::string& json) { return formatted(json, line_of); }

}  // namespace troupe::actors
