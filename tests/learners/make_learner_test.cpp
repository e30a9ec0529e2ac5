// The registry of algorithms, and the learner that only counts.
#include <gtest/gtest.h>

#include "models/inference/dense_policy.hpp"
#include "tests/learners/batches.hpp"

namespace troupe::learners {
namespace {

LearnerContext context() {
  LearnerContext result;
  result.spec = spec_of(3, 2);
  result.epoch = 4;
  return result;
}

TEST(MakeLearner, NamesTheAlgorithmsItKnows) {
  const auto learner = make_learner("sarsa", small_options(), context());
  ASSERT_FALSE(learner);
  EXPECT_EQ(learner.error().code, ErrorCode::kNotFound);
  EXPECT_NE(learner.error().message.find("d4pg"), std::string::npos);
}

TEST(MakeLearner, RefusesOptionsThatDoNotValidate) {
  LearnerOptions options = small_options();
  options.d4pg.v_min = options.d4pg.v_max;
  EXPECT_FALSE(make_learner("d4pg", options, context()));
  LearnerContext discrete = context();
  discrete.spec.action = {.discrete = true, .choices = 2, .low = {}, .high = {}};
  EXPECT_FALSE(make_learner("d4pg", small_options(), discrete));
}

TEST(NullLearner, CountsItsBatchesAndPublishesAPolicy) {
  auto learner = *make_learner("null", small_options(), context());
  replay::Batch batch(learner->batch_columns(), learner->batch_size());
  EXPECT_EQ(update(*learner, batch).version, 1U);
  EXPECT_EQ(update(*learner, batch).version, 2U);
  const models::ParameterSetPtr set = learner->parameters();
  EXPECT_EQ(set->version, 2U);
  EXPECT_EQ(set->learner_epoch, 4U);
  auto policy = models::DensePolicy::make(*set);
  ASSERT_TRUE(policy);
  EXPECT_EQ(policy->inputs(), 3);
  EXPECT_EQ(policy->outputs(), 2);
}

TEST(NullLearner, GoesOnCountingAfterAResume) {
  const TemporaryFolder folder;
  auto learner = *make_learner("null", small_options(), context());
  const replay::Batch batch(learner->batch_columns(), learner->batch_size());
  update(*learner, batch);
  ASSERT_TRUE(learner->save(folder.path()));
  auto resumed = *make_learner("null", small_options(), context());
  ASSERT_TRUE(resumed->load(folder.path()));
  EXPECT_EQ(resumed->version(), 1U);
}

}  // namespace
}  // namespace troupe::learners
