// One YAML value into one described field, strictly; and the words of the messages about it. Pure
// functions, any thread.
#pragma once

#include <yaml-cpp/yaml.h>

#include <string>
#include <string_view>
#include <vector>

#include "actors/config/description.hpp"

namespace troupe::actors {

// Why a value was refused: one sentence without its place, and the line it stands in (from 0).
struct Complaint {
  int line = 0;
  std::string text;
};

// Writes the value into the field's struct, or says what is wrong and leaves the field alone.
// `line` is that of the key; `source` the whole text that the node was parsed from.
std::vector<Complaint> assign(const Field& field, const YAML::Node& node, int line,
                              std::string_view source);

// "an integer", "a duration such as 60s", "one of uniform, prioritized", …
std::string expected_type(const Field& field);
// "1 to 64", "above 0", …; empty when anything is allowed.
std::string allowed_range(const Field& field);
// "a list", "the string \"abc\"", …
std::string found_value(const YAML::Node& node);

}  // namespace troupe::actors
