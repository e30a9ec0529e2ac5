// The learner as a role: what it holds, and what its two files do. learner_role.cpp trains and
// publishes, learner_report.cpp shows what came of it. A detached actor; belongs to its thread.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/roles/finite_updates.hpp"
#include "actors/roles/learner_source.hpp"
#include "actors/roles/parameter_feed.hpp"
#include "actors/roles/role_support.hpp"
#include "actors/roles/shard_host.hpp"

namespace troupe::actors {

class LearnerRole final : public RoleBase {
 public:
  using RoleBase::RoleBase;

  Result<void> start() override;
  void peers(const Peers& peers) override;
  void group(const GroupFormed& group) override {
    if (seat_) seat_->told(group);
  }
  void limit(const StepLimits& limits) override {
    if (host_) host_->limit(limits);
  }
  void statistics(const NormaliserDelta& delta) override;
  Result<void> work() override;
  void checkpoint(const CheckpointRequest& request) override;
  void stop() override;

 private:
  Result<void> idle(const char* reason);
  void close_source();
  Result<void> change_group();
  Result<void> settle();
  void publish_when_due();
  void publish();
  void tell_lead();
  Result<void> group_over(const Error& error);
  bool leads() const { return !seat_ || seat_->leads_run(); }
  bool has_finished() const;
  Result<void> make_learner();
  Result<void> open_source();
  Result<void> open_parameters();
  Result<void> update(const replay::Batch& batch);

  // learner_report.cpp
  void report();
  void publish_newest();
  void report_sent(RoleBoard::Snapshot& snapshot) const;
  void count_updates();
  void report_updates(RoleBoard::Snapshot& snapshot);
  void report_source(RoleBoard::Snapshot& snapshot) const;
  std::string waiting_on() const;

  EnvSpec spec_;
  std::unique_ptr<learners::Learner> learner_;
  std::optional<LearnerSeat> seat_;      // among several learners
  std::vector<std::string> endpoints_;   // where batches of remote shards come from
  std::optional<std::uint64_t> led_at_;  // update up to which led_ is counted, while it leads
  std::uint64_t led_ = 0;                // updates made while it led
  std::unique_ptr<ShardHost> host_;
  std::unique_ptr<BatchSource> source_;  // null between two groups
  replay::Batch* batch_ = nullptr;       // of the source: the next update's
  std::string limiter_state_;            // of the source before this one
  std::unique_ptr<ParameterServer> parameters_;
  BlockedTime blocked_;
  std::map<std::string, double> metrics_;
  FiniteUpdates finite_;
  bool unsettled_ = false;                  // the last update or group
  std::optional<std::uint64_t> published_;  // versions / publish_every; none: publish soon
  learners::UpdatesSent sent_;              // in groups before this one
  int failed_joins_ = 0;
  std::uint64_t compared_ = 0;  // updates after which all states were found equal
};

}  // namespace troupe::actors
