// How an options struct describes itself. Beside the struct, in its namespace, stands one template
//
//   template <class Visitor> void describe(Visitor& visitor, D4pgOptions& options) {
//     visitor.field("batch", options.batch, at_least(1), "Items per update, over all replicas.");
//     visitor.choice("selector", options.selector, {"uniform", "prioritized"}, "How items are
//     drawn."); visitor.group("noise", options.noise, "Exploration noise.");      // a nested
//     described struct
//   }
//
// and the YAML reader, `--set`, `troupe check`, `troupe help config`, the printed final config and
// the editor schema are visitors. The default is the field's value in a fresh struct. Field types:
// bool, std::int64_t, double, std::string, std::vector<std::int64_t>, std::vector<std::string>,
// Duration, and std::optional of std::int64_t, double or Duration ("none" in YAML: null).
#pragma once

#include <chrono>
#include <limits>

namespace troupe {

// Written in YAML as 500ms, 60s, 5m, 2h.
using Duration = std::chrono::milliseconds;

// Allowed range of a number, of each element of a list, or of a duration in milliseconds.
struct Bounds {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool low_open = false, high_open = false;  // true: the bound itself is refused
};

constexpr Bounds anything() { return {}; }
constexpr Bounds at_least(double low) {
  return {.low = low, .high = std::numeric_limits<double>::infinity()};
}
constexpr Bounds above(double low) {
  return {.low = low, .high = std::numeric_limits<double>::infinity(), .low_open = true};
}
constexpr Bounds between(double low, double high) { return {.low = low, .high = high}; }

}  // namespace troupe
