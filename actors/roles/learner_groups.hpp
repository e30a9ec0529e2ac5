// The groups of learners that a run has: one, whose learners apply every update together, or
// several that are asynchronous to each other (LearnerMembership says who is in each), and which
// learner counts for the run. Pure; time is a parameter. Owned by the coordinator.
#pragma once

#include <string>
#include <vector>

#include "actors/roles/learner_membership.hpp"

namespace troupe::actors {

class LearnerGroups {
 public:
  using Time = LearnerMembership::Time;

  // `learners` divide over as many groups as there are `generations`, which the groups' own follow.
  LearnerGroups(std::size_t learners, const std::vector<std::uint32_t>& generations);

  LearnerMembership& of(std::size_t group) { return groups_.at(group); }
  const LearnerGrouping& group(std::size_t group) const { return groups_.at(group).group(); }
  std::size_t size() const { return groups_.size(); }

  // The groups that were formed now.
  std::vector<std::size_t> tick(Time now);

  // The first member of a group, that of the first group that has one to begin with. It stays that
  // group's until the group has none; empty: nobody.
  std::string leader();

 private:
  std::vector<LearnerMembership> groups_;
  std::size_t leading_ = 0;
};

}  // namespace troupe::actors
