// Scalars of YAML 1.2's core schema (yaml.org/spec/1.2.2, 10.3.2) and Troupe's durations, from text
// to value and back. Pure functions, any thread. By hand because yaml-cpp still reads YAML 1.1
// numbers and booleans.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "envs/spec/options.hpp"

namespace troupe::actors {

// true | True | TRUE | false | False | FALSE.
std::optional<bool> core_boolean(std::string_view text);

// [-+]?[0-9]+, 0o17, 0x1F. `in_range` is false (and the value meaningless) beyond 64 bits.
struct CoreInteger {
  std::int64_t value = 0;
  bool in_range = true;
};
std::optional<CoreInteger> core_integer(std::string_view text);

// A number of the core schema, integers included; infinite beyond the range of double. .inf and
// .nan are numbers too.
std::optional<double> core_number(std::string_view text);

// 500ms, 60s, 5m, 2h, also 1.5h; whole milliseconds only.
std::optional<Duration> duration_from(std::string_view text);

// The shortest text that reads back as the same value.
std::string text_of(double value);
// In the largest unit that divides it: 90s, 2h, 1500ms.
std::string text_of(Duration value);

}  // namespace troupe::actors
