// A classifier learnt from labelled pictures: replicas on threads of their own, one batch at a
// time. Belongs to one thread.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "learners/learner.hpp"
#include "learners/supervised/classifier_replica.hpp"
#include "learners/supervised/picture_team.hpp"

namespace troupe::learners {

// Metrics of an UpdateReport, over the update's pictures: loss (with label smoothing), accuracy,
// gradient_norm, learning_rate.
class Classifier final : public Learner {
 public:
  // kInvalidArgument naming the option.
  static Result<std::unique_ptr<Classifier>> create(const ClassifierOptions& options,
                                                    const LearnerOptions& placement,
                                                    const PictureSpec& pictures,
                                                    const LearnerContext& context);

  // data::picture_columns.
  std::vector<Column> batch_columns() const override;
  std::int64_t batch_size() const override { return options_.batch; }
  Result<UpdateReport> update(const replay::Batch& batch) override;
  // Fewer rows than a batch are fine, as at an epoch's end: replicas take parts as equal as can be,
  // which may be none. In a group every learner gets all rows. kInvalidArgument for no rows at all.
  Result<UpdateReport> update(const PictureRows& rows);
  Result<void> join(const LearnerGroup& group) override;
  Result<const data::PictureBatch*> share(const data::PictureBatch* batch) override {
    return team_.share(batch);
  }
  void set_place(const data::DataPlace& place) override { team_.place = place; }
  data::DataPlace place() const override { return team_.place; }
  // All arrays, and batch norms' statistics of the first replica, by torchvision's names. Where
  // each replica has statistics of its own, those of the first one of rank 0 are evaluated.
  models::ParameterSetPtr parameters() const override;
  Result<void> merge_observations(std::span<const std::uint8_t>) override { return {}; }
  std::uint64_t version() const override { return replicas_.front()->updates(); }
  std::uint64_t state_hash(int replica) const override {
    return replicas_.at(static_cast<std::size_t>(replica))->state_hash();
  }
  int replicas() const override { return static_cast<int>(replicas_.size()); }
  Result<std::vector<FileContent>> snapshot() const override;
  Result<void> load(const std::filesystem::path& directory) override;

  // Adds what the first replica makes of the rows to `counted`.
  Result<void> evaluate(const PictureRows& rows, Classification& counted);
  const PictureSpec& pictures() const { return pictures_; }

 private:
  Classifier(const ClassifierOptions& options, const LearnerOptions& placement,
             const PictureSpec& pictures, const LearnerContext& context, models::ResNet model);
  Result<void> make_replicas();

  ClassifierOptions options_;
  LearnerOptions placement_;
  PictureSpec pictures_;
  LearnerContext context_;
  models::ResNet model_;
  std::vector<std::unique_ptr<ClassifierReplica>> replicas_;
  std::vector<ClassifierTotals> totals_;  // of the replicas, in the last update
  PictureTeam team_;                      // last: its threads end before what they use
};

}  // namespace troupe::learners
