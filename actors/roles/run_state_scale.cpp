// How a run grows while it goes on.
#include "actors/config/checks.hpp"
#include "actors/roles/run_state.hpp"

namespace troupe::actors {
namespace {

constexpr std::int64_t kMostShards = 256;  // as replay.shards

}  // namespace

Result<std::string> RunState::scale(const std::string& role, std::uint32_t count, Time now) {
  const auto refuse = [](const std::string& why) {
    return troupe::fail(ErrorCode::kInvalidArgument, why);
  };
  if (phase_ != Phase::kRunning) return refuse("the run is stopping: " + end_text_);
  const bool shards = role == "shard";
  const std::string actors = learns_from_pictures(options_) ? "data" : "environment";
  if (!shards && role != actors)
    return refuse("this run can be scaled in shard and " + actors + ", not in \"" + role + "\"");
  std::uint32_t present = 0;
  for (const NodePlan& node : plan_) present += node.role == role ? 1 : 0;
  if (shards && learns_from_pictures(options_)) return refuse("this run has no replay");
  if (shards && !shards_apart(options_))
    return refuse("replay.placement is " + options_.replay.placement +
                  ": its shards live in the learner's process and stay " +
                  std::to_string(options_.replay.shards));
  const std::int64_t most = shards ? kMostShards : options_.actors.max;
  if (static_cast<std::int64_t>(count) > most)
    return refuse(std::to_string(count) + " nodes of " + role + " are more than " +
                  (shards ? "" : "actors.max = ") + std::to_string(most));
  if (!shards && present == 0)
    return refuse("the run trains from replay.prefill alone and counts updates, not actor steps");
  if (count < present)
    return refuse("there are " + std::to_string(present) + " nodes of " + role +
                  "; fewer are not possible while the run goes on");
  for (std::uint32_t i = present; i < count; ++i)
    start(add_node(shards ? NodePlan{"shard-" + std::to_string(i), role, i} : plan_actor(role, i)),
          now);
  while (shards && shards_.size() < count) {
    step_shares_.restart(shards_.size(), 0);
    shards_.emplace_back();
  }
  (shards ? counters_.shards : counters_.actors) = count;
  const std::string text =
      role + " nodes: " + std::to_string(present) + " -> " + std::to_string(count);
  tell("", "info", "scaled", text);
  return text;
}

}  // namespace troupe::actors
