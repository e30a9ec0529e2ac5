// How a run grows and shrinks while it goes on. A node that is to leave is told so (DrainNode),
// finishes what it has under way, and ends; its deadline is stop.grace. Those whose state
// checkpoints hold leave between two of them.
#include <algorithm>

#include "actors/config/checks.hpp"
#include "actors/roles/run_state.hpp"

namespace troupe::actors {
namespace {

constexpr std::int64_t kMostShards = 256;  // as replay.shards

tl::unexpected<Error> refuse(const std::string& why) {
  return fail(ErrorCode::kInvalidArgument, why);
}

const char* word_of(const std::string& role) {
  return role == "shard" ? "shards" : role == "learner" ? "learners" : "actors";
}

std::string change(const std::string& word, std::size_t before, std::size_t after) {
  return word + ": " + std::to_string(before) + " -> " + std::to_string(after);
}

NodePlan plan_of(const std::string& role, std::uint32_t index) {
  return is_actor(role) ? plan_actor(role, index)
                        : NodePlan{role + "-" + std::to_string(index), role, index};
}

}  // namespace

std::vector<std::string> RunState::staying(const std::string& role) const {
  std::vector<std::string> names;
  for (const NodePlan& plan : plan_)
    if (plan.role == role && !nodes_.at(plan.name).leave_by) names.push_back(plan.name);
  return names;
}

// The role that a word of scale() stands for, if this run can have `count` of it.
Result<std::string> RunState::check_scale(const std::string& word, std::uint32_t count) const {
  if (phase_ != Phase::kRunning) return refuse("the run is stopping: " + end_text_);
  const bool pictures = learns_from_pictures(options_);
  const std::string asked = std::to_string(count) + " " + word;
  if (word == "actors") {
    const std::string role = pictures ? "data" : "environment";
    if (is_offline(options_))
      return refuse("the run trains from replay.prefill alone and counts updates, not actor steps");
    if (count > options_.actors.max)
      return refuse(asked + " are more than actors.max = " + std::to_string(options_.actors.max));
    if (count < options_.actors.min)
      return refuse(asked + " are fewer than actors.min = " + std::to_string(options_.actors.min));
    return role;
  }
  if (word == "shards") {
    if (pictures) return refuse("this run has no replay");
    if (!shards_apart(options_))
      return refuse("replay.placement is " + options_.replay.placement +
                    ": its shards live in the learner's process and stay " +
                    std::to_string(options_.replay.shards));
    if (count > kMostShards) return refuse(asked + " are more than " + std::to_string(kMostShards));
    if (count == 0) return refuse("0 shards: the run needs one");
    return "shard";
  }
  if (word != "learners")
    return refuse("actors, learners and shards can be scaled, not \"" + word + "\"");
  const std::int64_t most = most_learners(options_);
  if (is_asynchronous(options_))
    return refuse("learners.sync is " + options_.learners.sync + ": its learners stay " +
                  std::to_string(options_.learners.count));
  if (count > most)
    return refuse(asked + " are more than " +
                  (options_.learners.max > 0 ? "learners.max" : "learners.count") + " = " +
                  std::to_string(most) + "; learners.max is the most that a run can have");
  if (count == 0) return refuse("0 learners: the run needs one");
  const std::int64_t replicas = count * options_.learners.learner.replicas;
  if (options_.learners.learner.d4pg.batch % replicas != 0)
    return refuse("d4pg.batch " + std::to_string(options_.learners.learner.d4pg.batch) +
                  " does not divide by " + asked +
                  " x learners.replicas = " + std::to_string(replicas));
  return "learner";
}

Result<std::string> RunState::scale(const std::map<std::string, std::uint32_t>& counts, Time now) {
  std::map<std::string, std::uint32_t> wanted;
  for (const auto& [word, count] : counts) {
    const auto role = check_scale(word, count);
    if (!role) return tl::unexpected(role.error());
    wanted[*role] = count;
  }
  std::string text;
  for (const auto& [role, count] : wanted) {
    const std::vector<std::string> present = staying(role);
    if (count > present.size()) add_nodes(role, count, now);
    for (std::size_t i = count; i < present.size(); ++i) begin_leaving(nodes_.at(present[i]), now);
    note_count(role);
    const std::string line = change(word_of(role), present.size(), count);
    tell("", "info", "scaled", line);
    text += (text.empty() ? "" : "\n") + line;
  }
  return text;
}

// The lowest numbers that no node has.
void RunState::add_nodes(const std::string& role, std::uint32_t count, Time now) {
  std::set<std::uint32_t> taken;
  for (const NodePlan& plan : plan_)
    if (plan.role == role) taken.insert(plan.index);
  std::size_t present = staying(role).size();
  for (std::uint32_t index = 0; present < count; ++index) {
    if (taken.contains(index)) continue;
    ++present;
    if (role == "shard") {
      counters_.scaled.gone_shards.erase(index);
      if (shards_.size() <= index) shards_.resize(index + 1);
      step_shares_.restart(index, 0);
    }
    Node& node = add_node(plan_of(role, index));
    node.added = true;
    start(node, now);
  }
}

Result<std::string> RunState::drain(const std::string& name, Time now) {
  const auto found = nodes_.find(name);
  if (found == nodes_.end()) {
    std::string names;
    for (const NodePlan& plan : plan_) names += (names.empty() ? "" : ", ") + plan.name;
    return refuse("there is no node " + name + "; the nodes are " + names);
  }
  Node& node = found->second;
  const std::string role = node.plan.role;
  if (role == "evaluator" || role == "parameter_server")
    return refuse("the run needs its " + name + "; actors, learners and shards can be drained");
  if (node.leave_by) return name + " is leaving already";
  const std::size_t present = staying(role).size();
  const auto allowed = check_scale(word_of(role), static_cast<std::uint32_t>(present - 1));
  if (!allowed) return refuse(name + " stays: " + allowed.error().message);
  begin_leaving(node, now);
  note_count(role);
  const std::string text = name + " is drained; " + change(word_of(role), present, present - 1);
  tell("", "info", "scaled", text);
  return text;
}

// How many the run goes on with when it is resumed.
void RunState::note_count(const std::string& role) {
  const auto count = static_cast<std::uint32_t>(staying(role).size());
  ScaledCounts& scaled = counters_.scaled;
  if (role == "shard")
    scaled.shards = {static_cast<std::uint32_t>(shards_.size()),
                     static_cast<std::uint32_t>(options_.replay.shards)};
  else if (role == "learner")
    scaled.learners = {count, static_cast<std::uint32_t>(options_.learners.count)};
  else
    scaled.actors = {count, static_cast<std::uint32_t>(options_.actors.count)};
}

void RunState::begin_leaving(Node& node, Time now) {
  node.leave_by = now + options_.stop.grace;
  if (node.phase == NodePhase::kEnded) retire(std::string(node.plan.name), "", now);
}

void RunState::tick_leavers(Time now) {
  for (auto& [name, node] : nodes_) {
    if (!node.leave_by || node.phase == NodePhase::kEnded) continue;
    if (!node.asked && has_state(node.plan.role) && !is_actor(node.plan.role) && checkpoint_) {
      node.leave_by = now + options_.stop.grace;  // its time begins after the checkpoint
      continue;
    }
    if (!std::exchange(node.asked, true)) {
      if (node.plan.role == "shard") step_shares_.hold(node.plan.index);
      actions_.push_back(DrainNode{name});
    } else if (now > *node.leave_by) {
      kill(node, "it did not finish within the grace time");
    }
  }
}

bool RunState::stateful_leavers() const {
  return std::any_of(nodes_.begin(), nodes_.end(), [](const auto& entry) {
    const Node& node = entry.second;
    return node.leave_by && node.asked && !is_actor(node.plan.role);
  });
}

void RunState::retire(const std::string& name, const std::string& why, Time now) {
  const Node node = nodes_.at(name);
  if (node.plan.role == "shard") retire_shard(node, now);
  std::erase_if(plan_, [&](const NodePlan& plan) { return plan.name == name; });
  nodes_.erase(name);
  tell(name, "info", "left", name + " has left" + (why.empty() ? "" : ": " + why));
}

// What it held is removed by whoever scaled it away, as if the table had been full; nothing of it
// is lost.
void RunState::retire_shard(const Node& node, Time now) {
  ShardLedger& shard = shards_[node.plan.index];
  counters_.retired_inserted += shard.inserted;
  counters_.retired_prefilled += shard.prefilled;
  const std::uint64_t held = shard.inserted + shard.prefilled - shard.removed;
  shard = {};
  counters_.scaled.gone_shards.insert(node.plan.index);
  note_count("shard");
  step_shares_.leave(node.plan.index);
  tell_limits_ = true;
  tell(node.plan.name, "info", "removed_with_shard",
       "the " + std::to_string(held) + " steps that " + node.plan.name +
           " held are removed with it");
  if (checkpoint_ && !checkpoint_->committing) drop_checkpoint(node.plan.name + " has left");
  // Whoever goes back to an older checkpoint would know of a shard that is no more.
  last_checkpoint_ = now - options_.checkpoint.every;
}

std::vector<std::uint32_t> RunState::leaving_shards() const {
  std::vector<std::uint32_t> shards;
  for (const auto& [name, node] : nodes_)
    if (node.plan.role == "shard" && node.leave_by) shards.push_back(node.plan.index);
  return shards;
}

std::vector<std::uint32_t> RunState::gone_shards() const {
  std::vector<std::uint32_t> shards;
  for (std::uint32_t i = 0; i < shards_.size(); ++i)
    if (counters_.scaled.is_gone(options_, i)) shards.push_back(i);
  return shards;
}

bool RunState::begins_empty(const std::string& node) const {
  const auto found = nodes_.find(node);
  return found != nodes_.end() && found->second.added;
}

}  // namespace troupe::actors
