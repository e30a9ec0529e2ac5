// The D4PG learner: replicas on threads of their own, alone or in a group of learners, one batch at
// a time. Belongs to one thread.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "learners/d4pg/replica.hpp"
#include "learners/d4pg/server_link.hpp"
#include "learners/learner.hpp"
#include "learners/replicas/replicator.hpp"
#include "models/inference/normaliser.hpp"

namespace troupe::learners {

// Metrics of an UpdateReport, means over the items of the update unless they say otherwise:
//   critic_loss, policy_loss       weighted cross-entropy; minus the critic's mean at the policy's
//   action q_mean, target_mean            the critic's mean at the batch's actions; that of its
//   targets target_clipped_share           target mass that fell outside [v_min, v_max]
//   action_gradient_clipped_share  elements of dQ/da cut to action_gradient_clip
//   critic_gradient_norm, policy_gradient_norm   before clipping
class D4pgLearner final : public Learner {
 public:
  // `options` and `context` have been validated.
  D4pgLearner(const LearnerOptions& options, const LearnerContext& context);

  std::vector<Column> batch_columns() const override;
  std::int64_t batch_size() const override { return rows_before(replicas()) - rows_before(0); }
  Result<UpdateReport> update(const replay::Batch& batch) override;
  Result<void> join(const LearnerGroup& group) override;
  Result<bool> all_ready(bool ready) override;
  Result<bool> settle() override;
  void refresh() override;
  UpdatesSent updates_sent() const override;
  void set_epoch(std::uint32_t epoch) override { context_.epoch = epoch; }
  models::ParameterSetPtr parameters() const override;
  Result<void> merge_observations(std::span<const std::uint8_t> delta) override;
  std::uint64_t version() const override { return replicas_.front()->updates(); }
  std::uint64_t state_hash(int replica) const override;
  int replicas() const override { return static_cast<int>(replicas_.size()); }
  Result<std::vector<FileContent>> snapshot() const override;
  Result<void> load(const std::filesystem::path& directory) override;

 private:
  Result<void> check(const replay::Batch& batch) const;
  BatchRows rows_of(const replay::Batch& batch);
  UpdateReport report(std::vector<float> losses, bool metrics) const;
  void rescale();

  // In a group; learner_group.cpp.
  Result<void> replicate(const LearnerGroup& group);
  // Rows of the global batch that belong to replicas before local replica `index`.
  std::int64_t rows_before(std::int64_t index) const;
  Result<void> agree();
  Result<void> share_statistics();
  Result<void> compare();

  // Of an asynchronous group; learner_servers.cpp.
  Result<void> ask_servers();
  Result<bool> share_values(bool settled, std::uint64_t version);
  void exchange_statistics();

  LearnerOptions options_;
  LearnerContext context_;
  D4pgModel model_;
  LearnerGroup group_;  // of one learner while it trains alone
  std::vector<std::unique_ptr<D4pgReplica>> replicas_;
  std::vector<UpdateTotals> totals_;  // of the replicas, in the last update
  models::RunningStatistics statistics_;
  std::optional<models::ObservationScale> scale_;  // when the normaliser is on
  std::vector<float> scaled_, next_scaled_;        // [batch, observation]
  enum class Unsettled { kNothing, kValues, kUpdate };
  Unsettled unsettled_ = Unsettled::kNothing;  // what an asynchronous group has yet to settle
  std::unique_ptr<D4pgServerLink> servers_;    // of its rank 0
  std::uint64_t made_ = 0;                     // updates of this learner
  bool merged_ = false;                        // statistics that the servers have not
  Random random_;
  // Last: its threads end before what they use. Null between two groups.
  std::unique_ptr<Replicator> replicator_;
};

}  // namespace troupe::learners
