// Which nodes a run consists of. Pure.
#pragma once

#include <cstdint>
#include <set>
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

// How many nodes a run was scaled to while it went on; 0: never, as configured. What was scaled
// from other configured counts than the present ones does not count: whoever changed them meant it.
struct ScaledCounts {
  struct Count {
    std::uint32_t scaled = 0, configured = 0;
    std::int64_t now(std::int64_t from) const {
      return scaled > 0 && configured == from ? scaled : from;
    }
  };
  Count shards;  // places for them, of which those in `gone_shards` are empty
  std::set<std::uint32_t> gone_shards;
  Count actors, learners;

  std::int64_t shard_places(const RunOptions& options) const;
  bool is_gone(const RunOptions& options, std::uint32_t shard) const;
};

// Learners first, then parameter servers, shards of their own, actors and the evaluator.
std::vector<NodePlan> plan_topology(const RunOptions& options, const ScaledCounts& counts = {});

}  // namespace troupe::actors
