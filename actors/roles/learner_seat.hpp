// A learner's place among several: asks the coordinator for a group, joins the one it is told of,
// and says when it is over. Belongs to the learner role's thread.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "actors/roles/role_context.hpp"
#include "learners/learner.hpp"

namespace troupe::actors {

class LearnerSeat {
 public:
  // Both outlive it.
  LearnerSeat(const RoleContext& context, learners::Learner& learner)
      : context_(context), learner_(learner) {}

  // The coordinator has formed a group; older ones are ignored.
  void told(const GroupFormed& group);
  // There is a newer group to join.
  bool has_news() const { return news_.has_value(); }
  // Leaves the present group and joins that one; waits for its members. An error: the learner is in
  // none and has asked for the next.
  Result<void> join();
  // The group has failed this learner: it asks for the next one.
  void over(const std::string& reason);
  // While it is in no group: asks again where a message may have been lost.
  void ask_again();

  bool stands() const { return stands_; }
  bool leads() const { return stands_ && group_.rank == 0; }
  const GroupFormed& group() const { return group_; }  // the last one

 private:
  using Clock = std::chrono::steady_clock;
  void ask(const std::string& reason);
  void tell() const;

  const RoleContext& context_;
  learners::Learner& learner_;
  GroupFormed group_;
  std::optional<GroupFormed> news_;
  bool stands_ = false;
  Clock::time_point asked_{};
};

}  // namespace troupe::actors
