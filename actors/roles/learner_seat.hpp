// A learner's place among several, and its ways to parameter servers: asks the coordinator for a
// group, joins the one it is told of, and says when it is over. Belongs to the learner role's
// thread.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "actors/roles/role_context.hpp"
#include "actors/roles/update_link.hpp"
#include "learners/learner.hpp"

namespace troupe::actors {

class LearnerSeat {
 public:
  // Both outlive it. `spec` of the run's environment.
  LearnerSeat(const RoleContext& context, learners::Learner& learner, const EnvSpec& spec);

  // Where parameter servers and the learner that counts for the run are now.
  void peers(const Peers& peers);

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
  // Its group.
  bool leads() const { return stands_ && group_.rank == 0; }
  // The run: publishes, and writes the learner's part of checkpoints.
  bool leads_run() const { return leads() && (!asynchronous_ || leader_ == context_.node); }
  // Of the run's lead, which it has while leads_run(); see Peers.
  std::uint32_t lead() const { return lead_; }
  const GroupFormed& group() const { return group_; }  // the last one

 private:
  using Clock = std::chrono::steady_clock;
  void ask(const std::string& reason);
  void tell() const;

  const RoleContext& context_;
  learners::Learner& learner_;
  const bool asynchronous_;
  std::vector<std::shared_ptr<UpdateLink>> servers_;  // none while all learners are in sync
  std::string leader_;
  std::uint32_t lead_ = 0;
  GroupFormed group_;
  std::optional<GroupFormed> news_;
  bool stands_ = false;
  Clock::time_point asked_{};
};

}  // namespace troupe::actors
