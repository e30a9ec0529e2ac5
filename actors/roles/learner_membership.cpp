// Implements the rules of membership.
#include "actors/roles/learner_membership.hpp"

#include <algorithm>

namespace troupe::actors {
namespace {

constexpr std::chrono::milliseconds kGather{20000};  // for all learners, before the first group
constexpr std::chrono::milliseconds kSettle{1000};   // for survivors to notice a loss

}  // namespace

void LearnerMembership::asks(const std::string& learner, std::uint32_t generation, Time now) {
  const auto& members = group_.members;
  const bool member = std::find(members.begin(), members.end(), learner) != members.end();
  // It said so before it heard of the group that it is in now.
  if (member && generation < group_.generation) return;
  if (member && !broken_) broken_ = now;
  ask_.emplace(learner, now);
}

void LearnerMembership::ended(const std::string& learner, Time now) {
  ask_.erase(learner);
  if (std::erase(group_.members, learner) > 0 && !broken_) broken_ = now;
}

void LearnerMembership::leaves(const std::string& learner) {
  ask_.erase(learner);
  if (std::erase(group_.members, learner) > 0) smaller_ = !group_.members.empty();
}

bool LearnerMembership::due(Time now) const {
  if (smaller_ && !broken_) return true;
  if (ask_.empty()) return false;
  const auto waited = [&](std::chrono::milliseconds limit) {
    return std::any_of(ask_.begin(), ask_.end(),
                       [&](const auto& entry) { return now - entry.second >= limit; });
  };
  if (!formed_) return ask_.size() >= learners_ || waited(kGather);
  if (!broken_) return true;
  const bool all = std::all_of(group_.members.begin(), group_.members.end(),
                               [&](const std::string& name) { return ask_.contains(name); });
  return all || now - *broken_ >= kSettle;
}

std::optional<LearnerGrouping> LearnerMembership::tick(Time now) {
  if (!due(now)) return std::nullopt;
  if (broken_)
    std::erase_if(group_.members, [&](const std::string& name) { return !ask_.contains(name); });
  for (const auto& [name, since] : ask_)
    if (std::find(group_.members.begin(), group_.members.end(), name) == group_.members.end())
      group_.members.push_back(name);
  ++group_.generation;
  formed_ = true;
  ask_.clear();
  broken_.reset();
  smaller_ = false;
  return group_;
}

}  // namespace troupe::actors
