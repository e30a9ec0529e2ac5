// Implements the choice of the leader.
#include "actors/roles/learner_groups.hpp"

namespace troupe::actors {

LearnerGroups::LearnerGroups(std::size_t learners, const std::vector<std::uint32_t>& generations) {
  for (const std::uint32_t generation : generations)
    groups_.emplace_back(learners / generations.size(), generation);
}

std::vector<std::size_t> LearnerGroups::tick(Time now) {
  std::vector<std::size_t> formed;
  for (std::size_t i = 0; i < groups_.size(); ++i)
    if (groups_[i].tick(now)) formed.push_back(i);
  return formed;
}

std::string LearnerGroups::leader() {
  for (std::size_t i = 0; i < groups_.size() && groups_[leading_].leader().empty(); ++i)
    leading_ = (leading_ + 1) % groups_.size();
  return groups_[leading_].leader();
}

}  // namespace troupe::actors
