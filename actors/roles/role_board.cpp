// Implements the board's text form.
#include "actors/roles/role_board.hpp"

#include <cmath>
#include <nlohmann/json.hpp>

namespace troupe::actors {

std::string to_json(const RoleBoard::Snapshot& snapshot) {
  // NaN and infinities are not JSON: they travel as text.
  const auto numbers = [](const std::map<std::string, double>& values) {
    nlohmann::json object = nlohmann::json::object();
    for (const auto& [name, value] : values)
      object[name] = std::isfinite(value) ? nlohmann::json(value)
                                          : nlohmann::json(std::isnan(value) ? "nan"
                                                           : value > 0       ? "inf"
                                                                             : "-inf");
    return object;
  };
  return nlohmann::json{{"counters", numbers(snapshot.counters)},
                        {"gauges", numbers(snapshot.gauges)},
                        {"waiting_on", snapshot.waiting_on}}
      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace troupe::actors
