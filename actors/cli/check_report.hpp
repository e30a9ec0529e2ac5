// What `troupe check` finds out, as one JSON object and as text made from it. Pure functions.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "actors/config/reader.hpp"
#include "actors/roles/picture_data.hpp"
#include "envs/spec/spec.hpp"

namespace troupe::actors::cli {

// Keys: configuration, environment, nodes, ports, limiter, memory (terms and total, bytes).
nlohmann::ordered_json check_report(const std::string& file, const LoadedConfig& config,
                                    const EnvSpec& spec);
// Of a job on pictures: `data` in place of environment and limiter.
nlohmann::ordered_json check_report(const std::string& file, const LoadedConfig& config,
                                    const PictureSets& sets);
std::string check_text(const nlohmann::ordered_json& report);

}  // namespace troupe::actors::cli
