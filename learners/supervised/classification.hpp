// How well a classifier does on a set: top-1, top-5, per class and as a confusion matrix. A value
// of one owner; torch-free.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "envs/spec/result.hpp"

namespace troupe::learners {

class Classification {
 public:
  explicit Classification(std::int64_t classes);

  // Logits [labels.size()][classes] and their labels. kInvalidArgument for other sizes or a label
  // out of range; kNotFinite, naming the row, for a logit that is no number. Equal logits count
  // against the label: a constant classifier is right about nothing.
  Result<void> add(std::span<const float> logits, std::span<const std::int64_t> labels);
  // Adds what another one, of the same number of classes, counted.
  void merge(const Classification& other);

  std::int64_t classes() const { return classes_; }
  std::int64_t total() const { return total_; }
  // Shares of all items whose label is the largest logit, or among the five largest; 0 of none.
  double top1() const;
  double top5() const;
  // Mean cross-entropy.
  double loss() const;
  // Items of class `actual` that were taken for `predicted`.
  std::int64_t confused(std::int64_t actual, std::int64_t predicted) const {
    return confusion_[static_cast<std::size_t>(actual * classes_ + predicted)];
  }
  // Of one class: how many of its items were recognised, and how many that were taken for it are;
  // 0 where there are none.
  double recall(std::int64_t label) const;
  double precision(std::int64_t label) const;

 private:
  std::int64_t classes_, total_ = 0, top1_ = 0, top5_ = 0;
  double loss_ = 0;                      // sum
  std::vector<std::int64_t> confusion_;  // [actual][predicted]
};

}  // namespace troupe::learners
