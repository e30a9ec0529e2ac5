// The D4PG learner as its actor sees it: replicas, batches, publication, numbers that are not
// finite.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

#include "models/inference/dense_policy.hpp"
#include "models/inference/normaliser.hpp"
#include "tests/learners/batches.hpp"

namespace troupe::learners {
namespace {

std::unique_ptr<Learner> with_replicas(std::int64_t replicas, const std::string& step = "auto") {
  LearnerOptions options = small_options();
  options.replicas = replicas;
  options.d4pg.step = step;
  return learner_of(options, 4, 2);
}

TEST(D4pgLearner, DescribesItsBatches) {
  const auto learner = with_replicas(1);
  EXPECT_EQ(learner->batch_size(), 16);
  const std::vector<Column> columns = learner->batch_columns();
  ASSERT_EQ(columns.size(), 6U);
  EXPECT_EQ(columns[0], (Column{"observation", DType::kF32, {4}}));
  EXPECT_EQ(columns[1], (Column{"action", DType::kF32, {2}}));
}

TEST(D4pgLearner, HoldsBitwiseEqualReplicasAfterAThousandUpdates) {
  const auto learner = with_replicas(2);
  Random random(1);
  const std::uint64_t first = learner->state_hash(0);
  for (int i = 0; i < 1000; ++i) update(*learner, random_batch(*learner, random));
  EXPECT_EQ(learner->version(), 1000U);
  EXPECT_EQ(learner->state_hash(0), learner->state_hash(1));
  EXPECT_NE(learner->state_hash(0), first);
}

TEST(D4pgLearner, RepeatsItsBitsWithEqualSeedsOnly) {
  for (const std::int64_t replicas : {1, 4}) {
    const auto one = with_replicas(replicas), same = with_replicas(replicas);
    Random random_one(1), random_same(1);
    for (int i = 0; i < 50; ++i) {
      update(*one, random_batch(*one, random_one));
      update(*same, random_batch(*same, random_same));
    }
    EXPECT_EQ(one->state_hash(0), same->state_hash(0));
  }
  EXPECT_NE(learner_of(small_options(), 4, 2, 1)->state_hash(0),
            learner_of(small_options(), 4, 2, 2)->state_hash(0));
}

TEST(D4pgLearner, LearnsTheSameWithAnyNumberOfReplicas) {
  const auto one = with_replicas(1);
  Random random(1);
  std::vector<replay::Batch> batches;
  for (int i = 0; i < 50; ++i) batches.push_back(random_batch(*one, random));
  for (const replay::Batch& batch : batches) update(*one, batch);
  for (const std::int64_t replicas : {2, 4, 16}) {
    const auto many = with_replicas(replicas);
    for (const replay::Batch& batch : batches) update(*many, batch);
    EXPECT_LE(relative_distance(*one->parameters(), *many->parameters()), 1e-3) << replicas;
  }
}

TEST(D4pgLearner, ReportsTheSameMetricsWithAnyNumberOfReplicas) {
  const auto one = with_replicas(1), four = with_replicas(4);
  Random random(1);
  const replay::Batch batch = random_batch(*one, random);
  const UpdateReport a = update(*one, batch), b = update(*four, batch);
  const std::set<std::string> expected = {
      "critic_loss",          "policy_loss",          "q_mean",
      "target_mean",          "target_clipped_share", "action_gradient_clipped_share",
      "critic_gradient_norm", "policy_gradient_norm"};
  std::set<std::string> names;
  for (const auto& [name, value] : a.metrics) {
    names.insert(name);
    EXPECT_NEAR(value, b.metrics.at(name), 1e-5) << name;
  }
  EXPECT_EQ(names, expected);
  ASSERT_EQ(a.priorities.size(), 16U);
  for (std::size_t i = 0; i < 16; ++i) EXPECT_NEAR(a.priorities[i], b.priorities[i], 1e-5);
}

TEST(D4pgLearner, MeasuresOnlyAsOftenAsAsked) {
  LearnerOptions options = small_options();
  options.metrics_every = 3;
  const auto learner = learner_of(options, 4, 2);
  Random random(1);
  for (int i = 1; i <= 6; ++i)
    EXPECT_EQ(update(*learner, random_batch(*learner, random)).metrics.empty(), i % 3 != 0) << i;
}

TEST(D4pgLearner, IgnoresItemsOfWeightZeroInTheCriticsLoss) {
  // Two batches that differ in the rewards of items without weight give equal critics' losses.
  const auto one = with_replicas(1), other = with_replicas(1);
  Random random_one(1), random_other(1);
  replay::Batch a = random_batch(*one, random_one), b = random_batch(*other, random_other);
  for (std::size_t i = 0; i < 8; ++i) {
    a.floats("weight")[i] = b.floats("weight")[i] = 0;
    b.floats("reward")[i] += 3;
  }
  const UpdateReport left = update(*one, a), right = update(*other, b);
  EXPECT_EQ(left.metrics.at("critic_loss"), right.metrics.at("critic_loss"));
  EXPECT_NE(left.priorities, right.priorities);
}

TEST(D4pgLearner, ChangesNothingWhenABatchIsNotFinite) {
  for (const std::int64_t replicas : {1, 2}) {
    for (const char* column : {"observation", "action", "reward", "next_observation"}) {
      const auto learner = with_replicas(replicas);
      Random random(1);
      update(*learner, random_batch(*learner, random));
      const std::uint64_t before = learner->state_hash(0);
      for (const float poison : {std::nanf(""), std::numeric_limits<float>::infinity()}) {
        // An infinite reward is a value beyond the support and clips there.
        if (std::isinf(poison) && column == std::string("reward")) continue;
        replay::Batch batch = random_batch(*learner, random);
        batch.floats(column).back() = poison;
        const Result<UpdateReport> report = learner->update(batch);
        ASSERT_FALSE(report) << column << " " << poison;
        EXPECT_EQ(report.error().code, ErrorCode::kNotFinite) << report.error().message;
        for (int i = 0; i < replicas; ++i) EXPECT_EQ(learner->state_hash(i), before);
      }
      // And it goes on with the next batch.
      EXPECT_EQ(update(*learner, random_batch(*learner, random)).version, 2U);
    }
  }
}

TEST(D4pgLearner, RefusesBatchesOfAnotherShape) {
  const auto learner = with_replicas(1);
  replay::Batch few(learner->batch_columns(), 15);
  EXPECT_FALSE(learner->update(few));
  std::vector<Column> columns = learner->batch_columns();
  columns[0].shape = {5};
  EXPECT_FALSE(learner->update(replay::Batch(columns, 16)));
  columns.erase(columns.begin());
  const auto missing = learner->update(replay::Batch(columns, 16));
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.error().message.find("observation"), std::string::npos);
  EXPECT_EQ(learner->version(), 0U);
}

TEST(D4pgLearner, PublishesAPolicyThatActsWithoutTheLibrary) {
  const auto learner = with_replicas(2);
  Random random(1);
  for (int i = 0; i < 20; ++i) update(*learner, random_batch(*learner, random));
  const models::ParameterSetPtr set = learner->parameters();
  EXPECT_EQ(set->version, 20U);
  EXPECT_EQ(set->learner_epoch, 3U);
  auto policy = models::DensePolicy::make(*set);
  ASSERT_TRUE(policy) << policy.error().message;
  std::vector<float> actions(2);
  policy->act(std::vector<float>{1, -1, 0.5, 2}, actions);
  for (const float action : actions) EXPECT_LE(std::abs(action), 1);
}

TEST(D4pgLearner, StartsWithActionsNearTheMiddle) {
  const auto learner = with_replicas(1);
  auto policy = models::DensePolicy::make(*learner->parameters());
  std::vector<float> actions(2);
  policy->act(std::vector<float>{3, -1, 2, -2}, actions);
  for (const float action : actions) EXPECT_LT(std::abs(action), 0.1);
}

TEST(D4pgLearner, SeesObservationsNormalisedAndPublishesTheScale) {
  // Shifted and stretched observations with the normaliser on give what plain ones give without it.
  LearnerOptions options = small_options();
  const auto plain = learner_of(options, 4, 2);
  options.d4pg.normalise_observations = true;
  const auto normalised = learner_of(options, 4, 2);

  Random random(1);
  models::RunningStatistics delta(4);
  // Mean 8 and variance 4 exactly.
  ASSERT_TRUE(delta.add(std::vector<float>{6, 6, 6, 6}));
  ASSERT_TRUE(delta.add(std::vector<float>{10, 10, 10, 10}));
  ASSERT_TRUE(normalised->merge_observations(delta.encode()));
  for (int i = 0; i < 20; ++i) {
    replay::Batch batch = random_batch(*plain, random);
    update(*plain, batch);
    for (const char* column : {"observation", "next_observation"})
      for (float& value : batch.floats(column)) value = value * 2 + 8;
    update(*normalised, batch);
  }
  const models::ParameterSetPtr set = normalised->parameters();
  EXPECT_EQ(set->arrays.at("normaliser.mean").values, (std::vector<float>{8, 8, 8, 8}));
  EXPECT_EQ(set->arrays.at("normaliser.variance").values, (std::vector<float>{4, 4, 4, 4}));
  EXPECT_LE(relative_distance(*plain->parameters(), *set), 1e-3);

  EXPECT_FALSE(plain->parameters()->arrays.contains("normaliser.mean"));
  EXPECT_FALSE(normalised->merge_observations(std::vector<std::uint8_t>{1, 2, 3}));
  EXPECT_FALSE(normalised->merge_observations(models::RunningStatistics(5).encode()));
}

TEST(D4pgLearner, LearnsTheSameByAutogradAndByTheFusedKernels) {
  const auto autograd = with_replicas(1, "autograd"), fused = with_replicas(1, "fused");
  Random random(1);
  for (int i = 0; i < 30; ++i) {
    const replay::Batch batch = random_batch(*autograd, random);
    const UpdateReport a = update(*autograd, batch), b = update(*fused, batch);
    for (const auto& [name, value] : a.metrics)
      EXPECT_NEAR(value, b.metrics.at(name), 1e-3) << name << " " << i;
  }
  EXPECT_LE(relative_distance(*autograd->parameters(), *fused->parameters()), 1e-3);
}

}  // namespace
}  // namespace troupe::learners
