// Which nodes a run consists of. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "actors/config/run_options.hpp"

namespace troupe::actors {

struct NodePlan {
  std::string name;  // unique in the run: role's short name and index, e.g. "actor-0"
  std::string role;  // "learner" | "shard" | "environment" | "evaluator"
  std::uint32_t index = 0;
};

// Learner first, then shards of their own, environment actors and the evaluator. `shards` and
// `actors`: to how many it was scaled; the configured ones when they are more.
std::vector<NodePlan> plan_topology(const RunOptions& options, std::int64_t shards = 0,
                                    std::int64_t actors = 0);

}  // namespace troupe::actors
