// One replica of a classifier: network, optimizer state and the update that all replicas make
// together. Belongs to its thread; the learner touches it only between rounds of work.
#pragma once

#include <cstdint>
#include <vector>

#include "learners/replicas/context.hpp"
#include "learners/supervised/classification.hpp"
#include "learners/supervised/momentum.hpp"
#include "learners/supervised/options.hpp"
#include "learners/supervised/picture_input.hpp"
#include "learners/supervised/picture_rows.hpp"
#include "learners/supervised/pipeline.hpp"
#include "models/image/resnet.hpp"

namespace troupe::learners {

// Means over the global batch, equal on every replica.
struct ClassifierTotals {
  double loss = 0;      // with label smoothing
  double accuracy = 0;  // top-1 of the training pictures
  double gradient_norm = 0;
  double learning_rate = 0;
};

class ClassifierReplica {
 public:
  // Initialises from `seed`, alike on every replica. `model` and `options` outlive it.
  ClassifierReplica(const models::ResNet& model, const ClassifierOptions& options,
                    std::uint64_t seed);

  // Gradients over `rows`, which are this replica's part of global_count (PictureRows::part_of) and
  // may be none, summed over all replicas and applied. kNotFinite: nothing was changed on any
  // replica.
  Result<ClassifierTotals> update(ReplicaContext& context, const PictureRows& rows);
  // Adds what the network, averaged where options say so, makes of the rows to `counted`.
  Result<void> evaluate(const PictureRows& rows, Classification& counted);
  // Logits and features of the rows: [count][classes], [count][features].
  struct Outputs {
    at::Tensor logits, features;
  };
  Outputs outputs(const PictureRows& rows);

  // Of parameters, buffers, velocity, average and counter: equal bits, equal hash.
  std::uint64_t state_hash() const;
  std::uint64_t updates() const { return updates_; }
  void set_updates(std::uint64_t updates) { updates_ = updates; }
  models::ImageArrays& arrays() { return arrays_; }
  std::vector<float>& velocity() { return velocity_; }
  std::vector<float>& average() { return average_; }  // empty without averaging

 private:
  at::Tensor input(const PictureRows& rows) const {
    return input_(rows.pixels, rows.count, rows.side);
  }
  // Rows of all replicas in part `index`.
  std::int64_t rows_of_all(const ReplicaContext& context, std::int64_t global_count,
                           std::int64_t index) const;
  // `index`: which part of the replica's rows.
  models::Pass training_pass(ReplicaContext& context, std::int64_t global_count,
                             std::int64_t index);
  // Loss (a sum of shares of the global mean) and right answers; gradients are added up.
  void backward(ReplicaContext& context, const PictureRows& rows, std::int64_t index,
                ClassifierTotals& totals);
  void backward_in_stages(const std::vector<PictureRows>& parts, ClassifierTotals& totals);
  // Of the rows' logits, as a share of the global mean; counts it and the right answers.
  at::Tensor loss_of(const at::Tensor& logits, const PictureRows& rows, ClassifierTotals& totals);
  static bool shares_statistics(const ReplicaContext& context, const ClassifierOptions& options) {
    return options.batch_norm == "global" && context.replicas_in_sync() > 1;
  }
  Result<void> reduce(ReplicaContext& context, ClassifierTotals& totals);
  void apply(double rate);

  const models::ResNet& model_;
  const ClassifierOptions& options_;
  models::ImageArrays arrays_;
  std::vector<MomentumSegment> segments_;
  std::vector<float> velocity_, average_;
  PictureInput input_;
  std::unique_ptr<ResNetPipeline> pipeline_;  // with several stages
  std::uint64_t updates_ = 0;
};

}  // namespace troupe::learners
