#include "learners/supervised/classification.hpp"

#include <algorithm>
#include <cmath>
#include <string>

namespace troupe::learners {
namespace {

double share(std::int64_t part, std::int64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

Classification::Classification(std::int64_t classes)
    : classes_(classes), confusion_(static_cast<std::size_t>(classes * classes)) {}

Result<void> Classification::add(std::span<const float> logits,
                                 std::span<const std::int64_t> labels) {
  const auto width = static_cast<std::size_t>(classes_);
  if (logits.size() != labels.size() * width)
    return fail(ErrorCode::kInvalidArgument, std::to_string(labels.size()) +
                                                 " labels do not go with " +
                                                 std::to_string(logits.size()) + " logits of " +
                                                 std::to_string(classes_) + " classes");
  for (std::size_t row = 0; row < labels.size(); ++row) {
    const auto values = logits.subspan(row * width, width);
    if (labels[row] < 0 || labels[row] >= classes_)
      return fail(ErrorCode::kInvalidArgument, "label " + std::to_string(labels[row]) + " of row " +
                                                   std::to_string(row) + " is not below " +
                                                   std::to_string(classes_));
    if (!std::all_of(values.begin(), values.end(), [](float x) { return std::isfinite(x); }))
      return fail(ErrorCode::kNotFinite, "a logit of row " + std::to_string(row) + " is no number");
  }
  for (std::size_t row = 0; row < labels.size(); ++row) {
    const auto values = logits.subspan(row * width, width);
    const auto label = static_cast<std::size_t>(labels[row]);
    const float own = values[label];
    std::int64_t before = -1;  // how many others are not smaller; itself is one
    double sum = 0;
    const float largest = *std::max_element(values.begin(), values.end());
    std::size_t predicted = 0;
    for (std::size_t c = 0; c < width; ++c) {
      before += values[c] >= own ? 1 : 0;
      sum += std::exp(static_cast<double>(values[c]) - static_cast<double>(largest));
      // Of equals, one that is not the label.
      if (values[c] == largest && (values[predicted] != largest || predicted == label))
        predicted = c;
    }
    ++total_;
    top1_ += before == 0 ? 1 : 0;
    top5_ += before < 5 ? 1 : 0;
    loss_ += static_cast<double>(largest) - static_cast<double>(own) + std::log(sum);
    ++confusion_[label * width + predicted];
  }
  return {};
}

void Classification::merge(const Classification& other) {
  total_ += other.total_;
  top1_ += other.top1_;
  top5_ += other.top5_;
  loss_ += other.loss_;
  for (std::size_t i = 0; i < confusion_.size(); ++i) confusion_[i] += other.confusion_[i];
}

double Classification::top1() const { return share(top1_, total_); }
double Classification::top5() const { return share(top5_, total_); }
double Classification::loss() const {
  return total_ == 0 ? 0 : loss_ / static_cast<double>(total_);
}

double Classification::recall(std::int64_t label) const {
  std::int64_t items = 0;
  for (std::int64_t predicted = 0; predicted < classes_; ++predicted)
    items += confused(label, predicted);
  return share(confused(label, label), items);
}

double Classification::precision(std::int64_t label) const {
  std::int64_t items = 0;
  for (std::int64_t actual = 0; actual < classes_; ++actual) items += confused(actual, label);
  return share(confused(label, label), items);
}

}  // namespace troupe::learners
