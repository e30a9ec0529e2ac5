// What the coordinator knows of parameter servers and of the learners that send them updates.
#include <algorithm>

#include "actors/roles/run_state.hpp"

namespace troupe::actors {
namespace {

std::string name_of(std::uint32_t group) { return "learners-" + std::to_string(group); }

}  // namespace

void RunState::server_began(const Node& node, std::uint64_t version) {
  ServerLedger& server = servers_.at(node.plan.index);
  if (const std::uint64_t lost = server.began(version); lost > 0)
    tell(node.plan.name, "warning", "rolled_back",
         node.plan.name + " came back without the " + std::to_string(lost) +
             " updates applied since its last snapshot");
}

bool RunState::servers_ready() const {
  return std::none_of(nodes_.begin(), nodes_.end(), [](const auto& entry) {
    const Node& node = entry.second;
    return node.plan.role == "parameter_server" && (node.phase != NodePhase::kReady || node.killed);
  });
}

void RunState::server_said(std::uint32_t server, const ServerLife& life) {
  if (server < servers_.size()) servers_[server].says(life);
}

void RunState::server_cut(std::uint64_t id, std::uint32_t server, const ServerLife& life) {
  if (server >= servers_.size()) return;
  servers_[server].says(life);
  if (checkpoint_ && checkpoint_->id == id)
    checkpoint_->sent[server] = servers_[server].counts(life);
}

void RunState::group_formed(std::uint32_t group, std::uint32_t generation) {
  counters_.incarnations[name_of(group)] = generation;
}

std::uint32_t RunState::last_generation(std::uint32_t group) const {
  const auto found = counters_.incarnations.find(name_of(group));
  return found == counters_.incarnations.end() ? 0 : found->second;
}

std::string RunState::ledger_of_servers() const {
  std::string text;
  for (std::size_t i = 0; i < servers_.size(); ++i) {
    const UpdateCounts counts = servers_[i].counts();
    text += (i == 0 ? "updates: " : "; ") + std::string("parameter_server-") + std::to_string(i) +
            " " + std::to_string(counts.sent) + " sent = " + std::to_string(counts.applied) +
            " applied + " + std::to_string(counts.rolled_back) + " rolled back";
  }
  return text;
}

}  // namespace troupe::actors
