// Options that pass every check, for tests that break one, and what check_options says of them.
#pragma once

#include <string>

#include "actors/config/checks.hpp"

namespace troupe::actors {

inline RunOptions good_options() {
  RunOptions options;
  options.environment.name = "pendulum";
  return options;
}

// "accepted", or the message.
inline std::string error(const RunOptions& options) {
  const auto checked = check_options(options);
  return checked ? "accepted" : checked.error().message;
}

}  // namespace troupe::actors
