// The final configuration as text: YAML that reads back as the same options, JSON, and its hash.
// Pure functions, any thread.
#pragma once

#include <string>

#include "actors/config/description.hpp"
#include "actors/config/reader.hpp"
#include "actors/config/run_options.hpp"

namespace troupe::actors {

// Every key, in the order of the description, one section per group. load_config on it gives equal
// options.
std::string print_yaml(const RunOptions& options);
// The same with each value's origin as a comment, where it is not the default.
std::string print_yaml(const LoadedConfig& config);
// One object per section; durations as in YAML ("60s"), absent optional values as null.
std::string print_json(const RunOptions& options);
// 64-bit FNV-1a over the YAML, 16 hexadecimal digits. Every option counts.
std::string config_hash(const RunOptions& options);

// A field's present value as it stands in YAML.
std::string yaml_value(const Field& field);

}  // namespace troupe::actors
