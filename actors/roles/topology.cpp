// Implements the topology plan.
#include "actors/roles/topology.hpp"

#include <algorithm>

#include "actors/config/checks.hpp"

namespace troupe::actors {

NodePlan plan_actor(const std::string& role, std::uint32_t index) {
  return {(role == "data" ? "data-" : "actor-") + std::to_string(index), role, index};
}

std::vector<NodePlan> plan_topology(const RunOptions& options, std::int64_t shards,
                                    std::int64_t actors) {
  std::vector<NodePlan> nodes;
  for (std::int64_t i = 0; i < options.learners.count; ++i)
    nodes.push_back({"learner-" + std::to_string(i), "learner", static_cast<std::uint32_t>(i)});
  for (std::int64_t i = 0; i < parameter_servers(options); ++i)
    nodes.push_back({"parameter_server-" + std::to_string(i), "parameter_server",
                     static_cast<std::uint32_t>(i)});
  if (shards_apart(options))
    for (std::int64_t i = 0; i < std::max(options.replay.shards, shards); ++i)
      nodes.push_back({"shard-" + std::to_string(i), "shard", static_cast<std::uint32_t>(i)});
  const std::string role = learns_from_pictures(options) ? "data" : "environment";
  for (std::int64_t i = 0; i < std::max(options.actors.count, actors); ++i)
    nodes.push_back(plan_actor(role, static_cast<std::uint32_t>(i)));
  nodes.push_back({"evaluator-0", "evaluator", 0});
  return nodes;
}

}  // namespace troupe::actors
