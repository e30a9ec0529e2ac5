// The tasks that Troupe knows, by name. One explicit list in registry.cpp: a new task is one file
// and one line there. All functions may be called from any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "envs/env.hpp"

namespace troupe::envs {

struct EnvConfig {
  std::int64_t time_limit = 0;  // control steps before truncation; 0 keeps the task's own limit
};

// Makes one environment. Some names take an argument after '@': "probe/nan@50". Errors: kNotFound
// for a name that is not listed (the message holds the nearest ones) or a missing model file,
// kInvalidArgument for a bad argument or a negative time limit. The first environment of a physics
// task compiles its model (about 20 ms); later ones in the process share it.
Result<std::unique_ptr<Env>> make_env(std::string_view name, const EnvConfig& config = {});

// One listed task. `name` shows the argument as a placeholder: "probe/nan@K".
struct EnvEntry {
  std::string name;
  std::string summary;  // one line
};
const std::vector<EnvEntry>& env_entries();

// The listed names, in the order of the list.
std::vector<std::string> env_names();

}  // namespace troupe::envs
