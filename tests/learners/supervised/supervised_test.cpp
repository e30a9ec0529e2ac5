// Schedules, momentum and counting, against plain loops and known values.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "envs/spec/random.hpp"
#include "learners/supervised/classification.hpp"
#include "learners/supervised/momentum.hpp"
#include "learners/supervised/schedule.hpp"

namespace troupe::learners {
namespace {

using testing::HasSubstr;

TEST(LearningRate, GrowsWithTheBatchAndThroughWarmUp) {
  const ScheduleOptions options{.rate = 0.1, .warm_up = 4, .decay = "constant", .steps = {}};
  EXPECT_DOUBLE_EQ(learning_rate(options, 0, 256), 0.025);
  EXPECT_DOUBLE_EQ(learning_rate(options, 3, 256), 0.1);
  EXPECT_DOUBLE_EQ(learning_rate(options, 99, 1024), 0.4);
  ScheduleOptions fixed = options;
  fixed.per_batch = 0;
  EXPECT_DOUBLE_EQ(learning_rate(fixed, 99, 1024), 0.1);
}

TEST(LearningRate, EveryDecayEndsWhereItShould) {
  ScheduleOptions options{.rate = 1, .per_batch = 0, .warm_up = 10, .updates = 110, .steps = {}};
  EXPECT_DOUBLE_EQ(learning_rate(options, 10, 1), 1);
  EXPECT_NEAR(learning_rate(options, 60, 1), 0.5, 1e-12);
  EXPECT_NEAR(learning_rate(options, 110, 1), 0, 1e-12);
  EXPECT_NEAR(learning_rate(options, 200, 1), 0, 1e-12);
  options.decay = "linear";
  options.decay_from = 60;
  EXPECT_DOUBLE_EQ(learning_rate(options, 60, 1), 1);
  EXPECT_DOUBLE_EQ(learning_rate(options, 85, 1), 0.5);
  EXPECT_DOUBLE_EQ(learning_rate(options, 110, 1), 0);
  options.decay = "step";
  options.steps = {20, 40};
  EXPECT_DOUBLE_EQ(learning_rate(options, 19, 1), 1);
  EXPECT_DOUBLE_EQ(learning_rate(options, 20, 1), 0.1);
  EXPECT_NEAR(learning_rate(options, 40, 1), 0.01, 1e-15);
}

TEST(LearningRate, SchedulesWithoutAnEndAreRefused) {
  const auto refusal = [](const ScheduleOptions& options) {
    const auto checked = check(options);
    return checked ? std::string() : checked.error().message;
  };
  EXPECT_EQ(refusal({.updates = 100, .steps = {}}), "");
  EXPECT_THAT(refusal({.warm_up = 100, .updates = 100, .steps = {}}), HasSubstr("begins at 100"));
  EXPECT_THAT(refusal({.decay = "step", .steps = {}}), HasSubstr("steps is empty"));
  EXPECT_THAT(refusal({.decay = "step", .steps = {5, 5}}), HasSubstr("do not grow"));
}

// torch.optim.SGD(momentum=0.9, weight_decay=0.1, nesterov=True, lr=0.5), worked by hand for one
// number: p 2, g 1 twice.
TEST(Momentum, FollowsTorch) {
  std::vector<float> p{2, 2}, v{0, 0};
  const std::vector<float> g{1, 1};
  const std::vector<MomentumSegment> segments{{0, 1, true}, {1, 1, false}};
  const MomentumOptions options{.weight_decay = 0.1};
  momentum_update(options, 0.5, segments, p, g, v);
  EXPECT_FLOAT_EQ(v[0], 1.2F);
  EXPECT_FLOAT_EQ(p[0], 2 - 0.5F * (1.2F + 0.9F * 1.2F));
  EXPECT_FLOAT_EQ(p[1], 2 - 0.5F * 1.9F);  // no decay
  const float before = p[0];
  momentum_update(options, 0.5, segments, p, g, v);
  const float slope = 1 + 0.1F * before, velocity = 0.9F * 1.2F + slope;
  EXPECT_FLOAT_EQ(v[0], velocity);
  EXPECT_FLOAT_EQ(p[0], before - 0.5F * (slope + 0.9F * velocity));
}

TEST(Momentum, LayerWiseRatesFollowTheNorms) {
  std::vector<float> p{3, 4, 1}, v(3);
  const std::vector<float> g{0, 2, 1};
  const std::vector<MomentumSegment> segments{{0, 2, true}, {2, 1, false}};
  momentum_update({.nesterov = false, .weight_decay = 0.1, .trust = 0.01}, 2, segments, p, g, v);
  const float rate = 2 * 0.01F * 5 / (2 + 0.1F * 5);
  EXPECT_FLOAT_EQ(p[0], 3 - rate * 0.3F);
  EXPECT_FLOAT_EQ(p[1], 4 - rate * 2.4F);
  EXPECT_FLOAT_EQ(p[2], 1 - 2.0F);
  std::vector<float> zero{0, 0, 0}, still(3);
  momentum_update({.trust = 0.01}, 1, segments, zero, g, still);
  for (const float value : zero) EXPECT_TRUE(std::isfinite(value));
}

TEST(Average, MovesByItsShare) {
  std::vector<float> average{1, 0};
  average_update(0.9, std::vector<float>{2, 1}, average);
  EXPECT_FLOAT_EQ(average[0], 1.1F);
  EXPECT_FLOAT_EQ(average[1], 0.1F);
}

TEST(Classification, CountsWhatAPlainLoopCounts) {
  Random random(3);
  constexpr std::int64_t kClasses = 8, kRows = 500;
  std::vector<float> logits(kClasses * kRows);
  std::vector<std::int64_t> labels(kRows);
  for (float& value : logits) value = static_cast<float>(random.normal());
  for (std::int64_t& label : labels) label = static_cast<std::int64_t>(random.below(kClasses));
  Classification counted(kClasses), first(kClasses), second(kClasses);
  ASSERT_TRUE(counted.add(logits, labels));
  ASSERT_TRUE(first.add(std::span(logits).first(80), std::span(labels).first(10)));
  ASSERT_TRUE(second.add(std::span(logits).subspan(80), std::span(labels).subspan(10)));
  first.merge(second);
  double top1 = 0, top5 = 0, loss = 0;
  std::vector<int> right(kClasses), all(kClasses), taken(kClasses);
  for (std::size_t row = 0; row < kRows; ++row) {
    const float* values = &logits[row * kClasses];
    const auto label = static_cast<std::size_t>(labels[row]);
    int better = 0;
    double sum = 0;
    std::size_t best = 0;
    for (std::size_t c = 0; c < kClasses; ++c) {
      better += values[c] > values[label] ? 1 : 0;
      sum += std::exp(static_cast<double>(values[c]));
      if (values[c] > values[best]) best = c;
    }
    top1 += better == 0 ? 1.0 / kRows : 0;
    top5 += better < 5 ? 1.0 / kRows : 0;
    loss += (std::log(sum) - static_cast<double>(values[label])) / kRows;
    ++all[label];
    ++taken[best];
    right[label] += better == 0 ? 1 : 0;
  }
  for (const Classification* one : {&counted, &first}) {
    EXPECT_NEAR(one->top1(), top1, 1e-12);
    EXPECT_NEAR(one->top5(), top5, 1e-12);
    EXPECT_NEAR(one->loss(), loss, 1e-9);
    for (std::int64_t c = 0; c < kClasses; ++c) {
      EXPECT_DOUBLE_EQ(one->recall(c), static_cast<double>(right[c]) / all[c]);
      EXPECT_DOUBLE_EQ(one->precision(c), static_cast<double>(right[c]) / taken[c]);
    }
  }
}

TEST(Classification, AConstantClassifierIsRightAboutNothing) {
  Classification counted(3);
  ASSERT_TRUE(counted.add(std::vector<float>(9, 0.5F), std::vector<std::int64_t>{0, 1, 2}));
  EXPECT_EQ(counted.top1(), 0);
  for (std::int64_t c = 0; c < 3; ++c) EXPECT_EQ(counted.confused(c, c), 0);
  EXPECT_NEAR(counted.loss(), std::log(3.0), 1e-6);
}

TEST(Classification, WhatDoesNotFitChangesNothing) {
  Classification counted(2);
  EXPECT_EQ(counted.add(std::vector<float>(3), std::vector<std::int64_t>{0, 1}).error().code,
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(counted.add(std::vector<float>(4), std::vector<std::int64_t>{0, 2}).error().code,
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(
      counted.add(std::vector<float>{1, 2, NAN, 0}, std::vector<std::int64_t>{0, 1}).error().code,
      ErrorCode::kNotFinite);
  EXPECT_EQ(counted.total(), 0);
  EXPECT_EQ(counted.top1(), 0);
}

}  // namespace
}  // namespace troupe::learners
