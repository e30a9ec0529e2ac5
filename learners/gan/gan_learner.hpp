// SN-GAN learnt from pictures: replicas on threads of their own, one update at a time. An update is
// several steps of the discriminator and one of the generator. Belongs to one thread.
#pragma once

#include <memory>
#include <vector>

#include "learners/gan/gan_replica.hpp"
#include "learners/learner.hpp"
#include "learners/supervised/picture_team.hpp"

namespace troupe::learners {

// Metrics of an UpdateReport: loss/discriminator, loss/generator, score/real and score/fake (the
// discriminator's mean in its last step), learning_rate.
class GanLearner final : public Learner {
 public:
  // kInvalidArgument naming the option.
  static Result<std::unique_ptr<GanLearner>> create(const GanOptions& options,
                                                    const LearnerOptions& placement,
                                                    const PictureSpec& pictures,
                                                    const LearnerContext& context);

  // data::picture_columns.
  std::vector<Column> batch_columns() const override;
  std::int64_t batch_size() const override { return options_.pictures(); }
  // Fewer rows are fine, as at an epoch's end. In a group every learner gets all rows.
  Result<UpdateReport> update(const replay::Batch& batch) override;
  Result<void> join(const LearnerGroup& group) override;
  Result<const data::PictureBatch*> share(const data::PictureBatch* batch) override {
    return team_.share(batch);
  }
  void set_place(const data::DataPlace& place) override { team_.place = place; }
  data::DataPlace place() const override { return team_.place; }
  // The generator alone: its arrays, and batch norms' statistics of the first replica.
  models::ParameterSetPtr parameters() const override;
  Result<void> merge_observations(std::span<const std::uint8_t>) override { return {}; }
  std::uint64_t version() const override { return replicas_.front()->updates(); }
  std::uint64_t state_hash(int replica) const override {
    return replicas_.at(static_cast<std::size_t>(replica))->state_hash();
  }
  int replicas() const override { return static_cast<int>(replicas_.size()); }
  Result<std::vector<FileContent>> snapshot() const override;
  Result<void> load(const std::filesystem::path& directory) override;

 private:
  GanLearner(const GanOptions& options, const LearnerOptions& placement,
             const PictureSpec& pictures, const LearnerContext& context);
  Result<void> make_replicas();

  GanOptions options_;
  LearnerOptions placement_;
  PictureSpec pictures_;
  LearnerContext context_;
  models::Generator generator_;
  models::Discriminator discriminator_;
  std::vector<std::unique_ptr<GanReplica>> replicas_;
  std::vector<GanTotals> totals_;  // of the replicas, in the last update
  PictureTeam team_;               // last: its threads end before what they use
};

}  // namespace troupe::learners
