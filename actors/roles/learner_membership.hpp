// Who of the learners that are to train in step do so: a new group whenever one comes, ends or does
// not follow. Pure; time is a parameter. Owned by the coordinator.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace troupe::actors {

// The first member leads: it speaks for the group, and if the group counts for the run it publishes
// parameters, keeps the ratio of samples to inserts and writes the learner's part of checkpoints.
struct LearnerGrouping {
  std::uint32_t generation = 0;  // grows with every group; 0: none was formed yet
  std::vector<std::string> members;
};

// A learner asks for a group when it is ready, and again when its group has failed it. A group that
// has lost a member is over: those members that ask within `settle` form the next one, others are
// left out until they ask (a frozen one when it thaws). While a group stands, whoever asks joins
// it at once; members never change places, so that the lead only moves when the leader is lost.
class LearnerMembership {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // `learners`: how many the run starts; the first group waits for all of them for a while. Its
  // generation follows `generation`, of an earlier session.
  explicit LearnerMembership(std::size_t learners, std::uint32_t generation = 0)
      : learners_(learners) {
    group_.generation = generation;
  }

  // `generation`: of the last group that it was told of.
  void asks(const std::string& learner, std::uint32_t generation, Time now);
  void ended(const std::string& learner, Time now);
  // It is to leave in order: the others form the next group at once.
  void leaves(const std::string& learner);
  // The next group, once, when there is one to form.
  std::optional<LearnerGrouping> tick(Time now);

  const LearnerGrouping& group() const { return group_; }
  // Empty: nobody.
  std::string leader() const { return group_.members.empty() ? "" : group_.members.front(); }

 private:
  bool due(Time now) const;

  std::size_t learners_;
  LearnerGrouping group_;            // members that ended are taken out
  bool formed_ = false;              // a group, once
  std::map<std::string, Time> ask_;  // since when
  std::optional<Time> broken_;       // since when the group is over
  bool smaller_ = false;             // a member has left in order
};

}  // namespace troupe::actors
