// D4PG on batches whose values have closed forms: time limits that bootstrap, terminations that do
// not, and a bandit whose best action lies near one end.
#include <gtest/gtest.h>

#include <cmath>

#include "models/inference/dense_policy.hpp"
#include "tests/learners/batches.hpp"

namespace troupe::learners {
namespace {

constexpr double kDiscount = 0.99;
constexpr int kSteps = 5;  // of the n-step return

LearnerOptions value_options() {
  LearnerOptions options = small_options();
  options.metrics_every = 1000000;
  options.d4pg.batch = 64;
  options.d4pg.policy = {16};
  options.d4pg.critic = {64, 64};
  options.d4pg.atoms = 51;
  options.d4pg.target_period = 20;
  options.d4pg.learning_rate = 1e-3;
  return options;
}

// Mean of the critic where every item has this observation, read from the metrics of one more
// update.
double value_at(const LearnerOptions& options, const Learner& trained, float observation,
                const std::function<void(Item)>& make) {
  const TemporaryFolder folder;
  EXPECT_TRUE(trained.save(folder.path()));
  LearnerOptions measuring = options;
  measuring.metrics_every = 1;
  const auto learner = learner_of(measuring, 1, 1);
  EXPECT_TRUE(learner->load(folder.path()));
  replay::Batch batch(learner->batch_columns(), learner->batch_size());
  fill(batch, [&](Item item) {
    make(item);
    item.observation[0] = observation;
  });
  return update(*learner, batch).metrics.at("q_mean");
}

void train(Learner& learner, int updates, const std::function<void(Item)>& make) {
  replay::Batch batch(learner.batch_columns(), learner.batch_size());
  for (int i = 0; i < updates; ++i) {
    fill(batch, make);
    update(learner, batch);
  }
}

// Trains, then goes on at a tenth of the rate: what is left is the value's own error, not the last
// steps' noise.
std::unique_ptr<Learner> trained_on(const LearnerOptions& options,
                                    const std::function<void(Item)>& make) {
  const TemporaryFolder folder;
  const auto first = learner_of(options, 1, 1);
  train(*first, 7000, make);
  EXPECT_TRUE(first->save(folder.path()));
  LearnerOptions slower = options;
  slower.d4pg.learning_rate /= 10;
  auto learner = learner_of(slower, 1, 1);
  EXPECT_TRUE(learner->load(folder.path()));
  train(*learner, 3000, make);
  return learner;
}

// Reward 1 for ever, cut by time limits only: sum of 0.99^i = 100 everywhere.
TEST(D4pgOnProbes, LearnsTheValueOfAConstantRewardThroughTruncations) {
  LearnerOptions options = value_options();
  options.d4pg.v_min = 0;
  options.d4pg.v_max = 150;
  Random random(1);
  const auto item = [&](Item i) {
    i.observation[0] = static_cast<float>(random.uniform());
    i.next_observation[0] = static_cast<float>(random.uniform());
    i.action[0] = static_cast<float>(random.uniform(-1, 1));
    // Shorter sums where the limit cuts, discounted by what was really summed.
    const int summed = 1 + static_cast<int>(random.below(kSteps));
    i.discount = static_cast<float>(std::pow(kDiscount, summed));
    i.reward = static_cast<float>((1 - std::pow(kDiscount, summed)) / (1 - kDiscount));
  };
  const auto learner = trained_on(options, item);
  for (const float observation : {0.1F, 0.5F, 0.9F})
    EXPECT_NEAR(value_at(options, *learner, observation, item), 100, 1) << observation;
}

// Reward 1 until the termination at step 50, observation t/50: (1 - 0.99^(50-t)) / (1 - 0.99).
TEST(D4pgOnProbes, LearnsTheValueOfAnEpisodeThatTerminates) {
  LearnerOptions options = value_options();
  options.d4pg.v_min = 0;
  options.d4pg.v_max = 60;
  constexpr int kLength = 50;
  Random random(1);
  const auto item = [&](Item i) {
    const int t = static_cast<int>(random.below(kLength));
    const int summed = std::min(kSteps, kLength - t);
    i.observation[0] = static_cast<float>(t) / kLength;
    i.next_observation[0] = static_cast<float>(t + summed) / kLength;
    i.action[0] = static_cast<float>(random.uniform(-1, 1));
    i.reward = static_cast<float>((1 - std::pow(kDiscount, summed)) / (1 - kDiscount));
    i.discount = t + summed == kLength ? 0.0F : static_cast<float>(std::pow(kDiscount, summed));
  };
  const auto learner = trained_on(options, item);
  for (const int t : {0, 10, 25, 40}) {
    const double value = (1 - std::pow(kDiscount, kLength - t)) / (1 - kDiscount);
    EXPECT_NEAR(value_at(options, *learner, static_cast<float>(t) / kLength, item), value, 0.395)
        << t;
  }
}

// Reward -(a - best)^2: the deterministic policy reaches the best action near either end.
TEST(D4pgOnProbes, ReachesTheBestActionNearBothEndsOfItsBounds) {
  LearnerOptions options = value_options();
  options.d4pg.policy = {32, 32};
  options.d4pg.critic = {64, 64};
  options.d4pg.v_min = -4;
  options.d4pg.v_max = 0;
  const auto learner = learner_of(options, 1, 2);
  constexpr float kBest[] = {0.9F, -0.9F};
  Random random(1);
  train(*learner, 4000, [&](Item i) {
    i.observation[0] = i.next_observation[0] = static_cast<float>(random.uniform(-1, 1));
    i.reward = i.discount = 0;
    for (std::size_t k = 0; k < 2; ++k) {
      i.action[k] = static_cast<float>(random.uniform(-1, 1));
      i.reward -= 0.5F * (i.action[k] - kBest[k]) * (i.action[k] - kBest[k]);
    }
  });
  auto policy = models::DensePolicy::make(*learner->parameters());
  ASSERT_TRUE(policy);
  for (const float observation : {-0.8F, 0.0F, 0.8F}) {
    std::vector<float> actions(2);
    policy->act({&observation, 1}, actions);
    EXPECT_NEAR(actions[0], kBest[0], 0.1) << observation;
    EXPECT_NEAR(actions[1], kBest[1], 0.1) << observation;
  }
}

}  // namespace
}  // namespace troupe::learners
