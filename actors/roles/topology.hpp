// Which nodes a run consists of. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "actors/config/run_options.hpp"

namespace troupe::actors {

struct NodePlan {
  std::string name;  // unique in the run: role's short name and index, e.g. "actor-0"
  // "learner" | "parameter_server" | "shard" | "environment" | "data" | "evaluator"
  std::string role;
  std::uint32_t index = 0;
};

// Roles that make what the learner learns from: any number of them may come and go.
inline bool is_actor(const std::string& role) { return role == "environment" || role == "data"; }
// Roles whose state checkpoints hold; the others have none.
inline bool has_state(const std::string& role) { return role != "evaluator" && role != "data"; }
// The node number `index` of such a role: "actor-0", "data-0".
NodePlan plan_actor(const std::string& role, std::uint32_t index);

// Learners first, then parameter servers, shards of their own, actors and the evaluator. `shards`
// and `actors`: to how many it was scaled; the configured ones when they are more.
std::vector<NodePlan> plan_topology(const RunOptions& options, std::int64_t shards = 0,
                                    std::int64_t actors = 0);

}  // namespace troupe::actors
