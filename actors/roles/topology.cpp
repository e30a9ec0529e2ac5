// Implements the topology plan.
#include "actors/roles/topology.hpp"

#include <algorithm>

#include "actors/config/checks.hpp"

namespace troupe::actors {

NodePlan plan_actor(const std::string& role, std::uint32_t index) {
  return {(role == "data" ? "data-" : "actor-") + std::to_string(index), role, index};
}

// A run that keeps its shards with the learner has the configured ones.
std::int64_t ScaledCounts::shard_places(const RunOptions& options) const {
  return shards_apart(options) ? shards.now(options.replay.shards) : options.replay.shards;
}

bool ScaledCounts::is_gone(const RunOptions& options, std::uint32_t shard) const {
  return shards_apart(options) && shards.configured == options.replay.shards &&
         gone_shards.contains(shard);
}

std::vector<NodePlan> plan_topology(const RunOptions& options, const ScaledCounts& counts) {
  std::vector<NodePlan> nodes;
  for (std::int64_t i = 0; i < counts.learners.now(options.learners.count); ++i)
    nodes.push_back({"learner-" + std::to_string(i), "learner", static_cast<std::uint32_t>(i)});
  for (std::int64_t i = 0; i < parameter_servers(options); ++i)
    nodes.push_back({"parameter_server-" + std::to_string(i), "parameter_server",
                     static_cast<std::uint32_t>(i)});
  if (shards_apart(options))
    for (std::uint32_t i = 0; i < counts.shard_places(options); ++i)
      if (!counts.is_gone(options, i)) nodes.push_back({"shard-" + std::to_string(i), "shard", i});
  const std::string role = learns_from_pictures(options) ? "data" : "environment";
  for (std::int64_t i = 0; i < counts.actors.now(options.actors.count); ++i)
    nodes.push_back(plan_actor(role, static_cast<std::uint32_t>(i)));
  nodes.push_back({"evaluator-0", "evaluator", 0});
  return nodes;
}

}  // namespace troupe::actors
