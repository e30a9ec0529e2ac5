// The configuration explained from its own description: for `troupe help config` and for editors.
// Pure functions, any thread.
#pragma once

#include <string>

#include "envs/spec/result.hpp"

namespace troupe::actors {

// Every key with its default, type, range and meaning, section by section.
std::string reference_text();

// The same for one key ("d4pg.batch") or one section ("d4pg"). kNotFound names the nearest one.
Result<std::string> reference_text(const std::string& key);

// A JSON schema (draft 7) that editors with a YAML language server take.
std::string reference_schema();

}  // namespace troupe::actors
