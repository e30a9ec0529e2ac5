// The torch-free policy against a slow forward pass in double, and what it refuses.
#include "models/inference/dense_policy.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "models/inference/normaliser.hpp"
#include "tests/inference/policies.hpp"

namespace troupe::models {
namespace {

DenseNetworkShape shape_of(std::int64_t inputs, std::vector<std::int64_t> hidden,
                           std::int64_t outputs, bool layer_norm) {
  return {.name = "policy",
          .inputs = inputs,
          .hidden = std::move(hidden),
          .outputs = outputs,
          .layer_norm = layer_norm,
          .tanh_output = true};
}

DensePolicy make(const ParameterSet& set) {
  Result<DensePolicy> policy = DensePolicy::make(set);
  EXPECT_TRUE(policy) << policy.error().message;
  return *std::move(policy);
}

TEST(DensePolicy, AgreesWithASlowForwardPass) {
  for (const bool layer_norm : {true, false}) {
    for (const auto& [inputs, outputs] : {std::pair{17, 6}, {1, 1}, {5, 17}, {67, 21}}) {
      const ParameterSet set =
          random_policy(shape_of(inputs, {33, 256, 7}, outputs, layer_norm), 1);
      DensePolicy policy = make(set);
      const std::vector<float> observations = random_observations(13 * inputs, 2);
      std::vector<float> actions(static_cast<std::size_t>(13 * outputs));
      policy.act(observations, actions);
      for (std::size_t row = 0; row < 13; ++row) {
        const auto first = observations.begin() + static_cast<std::ptrdiff_t>(row) * inputs;
        const std::vector<double> expected = slow_forward(set, {first, first + inputs});
        for (std::size_t i = 0; i < expected.size(); ++i)
          EXPECT_NEAR(actions[row * expected.size() + i], expected[i], 2e-6);
      }
    }
  }
}

TEST(DensePolicy, GivesARowTheSameBitsInAnyBatch) {
  DensePolicy policy = make(random_policy(shape_of(17, {256, 256}, 6, true), 3));
  const std::vector<float> observations = random_observations(31 * 17, 4);
  std::vector<float> together(31 * 6), alone(6);
  policy.act(observations, together);
  for (std::size_t row = 0; row < 31; ++row) {
    policy.act(std::span(observations).subspan(row * 17, 17), alone);
    for (std::size_t i = 0; i < 6; ++i) EXPECT_EQ(alone[i], together[row * 6 + i]) << row;
  }
}

TEST(DensePolicy, ScalesObservationsWhenTheNormaliserIsThere) {
  ParameterSet set = random_policy(shape_of(3, {8}, 2, true), 5);
  const std::vector<float> raw = {5, -3, 100}, mean = {4, 0, 90}, variance = {4, 9, 25};
  std::vector<float> scaled(3), expected(2), actual(2);
  ObservationScale(mean, variance).apply(raw, scaled);
  make(set).act(scaled, expected);
  set.arrays[kNormaliserMean] = {{3}, mean};
  set.arrays[kNormaliserVariance] = {{3}, variance};
  make(set).act(raw, actual);
  EXPECT_EQ(actual, expected);
}

TEST(DensePolicy, RefusesMissingArraysOtherShapesAndValuesThatAreNotFinite) {
  const ParameterSet good = random_policy(shape_of(3, {8}, 2, true), 6);
  for (const auto& [name, array] : good.arrays) {
    ParameterSet missing = good, reshaped = good, poisoned = good;
    missing.arrays.erase(name);
    reshaped.arrays[name].shape.front() += 1;
    poisoned.arrays[name].values.front() = std::nanf("");
    for (const ParameterSet* bad : {&missing, &reshaped, &poisoned}) {
      const Result<DensePolicy> policy = DensePolicy::make(*bad);
      ASSERT_FALSE(policy);
      EXPECT_NE(policy.error().message.find(name), std::string::npos) << policy.error().message;
    }
  }
}

TEST(DensePolicy, RefusesLayersThatDoNotFollowOneAnother) {
  ParameterSet set = random_policy(shape_of(3, {8, 9}, 2, false), 7);
  EXPECT_TRUE(DensePolicy::make(set));
  std::swap(set.policy[0], set.policy[2]);
  EXPECT_FALSE(DensePolicy::make(set));
  set.policy.clear();
  EXPECT_FALSE(DensePolicy::make(set));
}

}  // namespace
}  // namespace troupe::models
