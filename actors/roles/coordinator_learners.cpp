// Implements what the coordinator does for groups of learners and their parameter servers.
#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "actors/config/checks.hpp"
#include "actors/roles/coordinator_state.hpp"
#include "actors/roles/update_link.hpp"
#include "actors/runtime/log.hpp"

namespace troupe::actors {

using Clock = std::chrono::steady_clock;
using Self = CoordinatorSelf;

namespace {

// Of a learner, by its place in the plan.
std::size_t group_of(Self self, const std::string& learner) {
  const CoordinatorState& state = self->state;
  for (const NodePlan& plan : state.run->plan())
    if (plan.name == learner)
      return static_cast<std::size_t>(group_of_learner(state.setup->options, plan.index));
  return 0;
}

// If it is a member.
void tell_group(Self self, const std::string& learner) {
  CoordinatorState& state = self->state;
  const std::size_t index = group_of(self, learner);
  const LearnerGrouping& group = state.groups->group(index);
  const auto found = std::find(group.members.begin(), group.members.end(), learner);
  const auto node = state.nodes.find(learner);
  if (found == group.members.end() || node == state.nodes.end()) return;
  self->send(node->second, GroupFormed{static_cast<std::uint32_t>(index), group.generation,
                                       static_cast<std::uint32_t>(found - group.members.begin()),
                                       static_cast<std::uint32_t>(group.members.size())});
}

}  // namespace

void begin_groups(Self self) {
  CoordinatorState& state = self->state;
  const RunOptions& options = state.setup->options;
  if (!learns_in_groups(options)) return;
  const auto groups = static_cast<std::size_t>(sync_groups(options));
  // Parameter servers remember the generations of earlier sessions.
  std::vector<std::uint32_t> generations(groups);
  if (is_asynchronous(options))
    for (std::uint32_t i = 0; i < groups; ++i) generations[i] = state.run->last_generation(i);
  const auto& plan = state.run->plan();
  const auto learners = std::count_if(plan.begin(), plan.end(),
                                      [](const NodePlan& node) { return node.role == "learner"; });
  state.groups.emplace(static_cast<std::size_t>(learners), generations);
  state.rendezvous.resize(groups);
  if (!is_asynchronous(options)) return;
  // Snapshots of an earlier session are older or newer than the checkpoint that this one begins
  // with.
  const auto folder = server_snapshots(state.setup->run_directory);
  std::error_code error;
  std::filesystem::remove_all(folder, error);
  std::filesystem::create_directories(folder, error);
  if (error) tell(self, Tell{"", "error", "snapshots", folder.string() + ": " + error.message()});
}

// Most nodes that come or go move nothing; who joins is told by itself.
void broadcast_peers(Self self) {
  CoordinatorState& state = self->state;
  if (state.told_peers == state.peers) return;
  state.told_peers = state.peers;
  for (const auto& [name, node] : state.nodes) self->send(node, state.peers);
}

void lead(Self self) {
  CoordinatorState& state = self->state;
  const std::string leader = state.groups ? state.groups->leader() : "learner-0";
  const auto of_leader = [&](const std::map<std::string, std::string>& endpoints) {
    const auto found = endpoints.find(leader);
    return found == endpoints.end() ? std::string() : found->second;
  };
  state.peers.parameter_endpoint = of_leader(state.learner_endpoints);
  if (learns_from_pictures(state.setup->options))
    state.peers.shard_endpoints = {of_leader(state.picture_endpoints)};
  if (!state.groups) return;
  if (state.peers.leader != leader) {
    ++state.peers.lead;
    state.peers.leader = leader;
    if (is_asynchronous(state.setup->options) && !leader.empty())
      tell(self, Tell{"", "info", "lead", leader + " leads the learners"});
  }
  state.run->learner_leads(leader);
}

void on_group_wanted(Self self, const GroupWanted& wanted) {
  CoordinatorState& state = self->state;
  if (!state.groups || !state.run->is_current(wanted.node, wanted.incarnation) ||
      state.run->phase() >= RunState::Phase::kLeaving)
    return;
  if (!wanted.reason.empty())
    tell(self, Tell{wanted.node, "warning", "group_over",
                    wanted.node + " is without a group: " + wanted.reason});
  const std::size_t group = group_of(self, wanted.node);
  state.groups->of(group).asks(wanted.node, wanted.generation, Clock::now());
  // The message that told it of the present one may have been lost.
  if (wanted.generation < state.groups->group(group).generation) tell_group(self, wanted.node);
}

bool leave_group(Self self, const std::string& learner) {
  CoordinatorState& state = self->state;
  const auto& plan = state.run->plan();
  if (std::none_of(plan.begin(), plan.end(), [&](const NodePlan& node) {
        return node.name == learner && node.role == "learner";
      }))
    return false;
  state.groups->of(group_of(self, learner)).leaves(learner);
  state.learner_endpoints.erase(learner);
  form_groups(self);
  lead(self);
  broadcast_peers(self);
  return true;
}

void form_groups(Self self) {
  CoordinatorState& state = self->state;
  if (!state.groups || state.run->phase() >= RunState::Phase::kLeaving) return;
  const std::vector<std::size_t> formed = state.groups->tick(Clock::now());
  if (formed.empty()) return;
  const bool asynchronous = is_asynchronous(state.setup->options);
  for (const std::size_t index : formed) {
    const LearnerGrouping& group = state.groups->group(index);
    state.rendezvous[index] = std::make_shared<learners::RendezvousTable>();
    if (asynchronous) state.run->group_formed(static_cast<std::uint32_t>(index), group.generation);
    std::string names;
    for (const std::string& member : group.members) {
      names += (names.empty() ? "" : ", ") + member;
      tell_group(self, member);
    }
    tell(self, Tell{"", "info", "learners",
                    "learners in step: " + names + " (" +
                        (asynchronous ? "group " + std::to_string(index) + ", " : "") +
                        "generation " + std::to_string(group.generation) + ")"});
  }
  lead(self);
  broadcast_peers(self);
}

void take_server_report(Self self, const nlohmann::json& counters, const nlohmann::json& gauges) {
  CoordinatorState& state = self->state;
  for (std::uint32_t i = 0; i < state.peers.update_endpoints.size(); ++i) {
    const std::string prefix = "server" + std::to_string(i) + "/";
    if (!counters.contains(prefix + "applied")) continue;
    state.run->server_said(i, {gauges.at(prefix + "version").get<std::uint64_t>(),
                               counters.at(prefix + "applied").get<std::uint64_t>()});
  }
}

}  // namespace troupe::actors
