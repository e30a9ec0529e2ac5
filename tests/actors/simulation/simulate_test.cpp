// Simulated runs against the rates that follow from their costs.
#include "actors/simulation/simulate.hpp"

#include <gtest/gtest.h>

namespace troupe::actors::simulation {
namespace {

Figures of(const Options& options) {
  const auto figures = simulate(options);
  EXPECT_TRUE(figures.has_value()) << figures.error().message;
  return figures.value_or(Figures{});
}

// Nothing costs anything but what a test says.
Options free_run() {
  Options options;
  options.cores = 8;
  options.local_latency = 0;
  for (double* cost :
       {&options.chunk, &options.send_chunk, &options.receive_chunk, &options.take_parameters,
        &options.insert_chunk, &options.insert_step, &options.sample_batch, &options.sample_item,
        &options.send_item, &options.receive_item, &options.publish, &options.publish_each,
        &options.message, &options.node, &options.poll})
    *cost = 0;
  options.min_size = 100000000;  // nothing is sampled
  options.warm_up = 0.5;
  options.seconds = 5;
  return options;
}

Options learning_run() {
  Options options = free_run();
  options.min_size = 1000;
  options.samples_per_insert = 32;
  options.warm_up = 5;
  options.step = 100e-6;
  options.update = 5e-3;
  return options;
}

TEST(Simulate, AnActorWithoutALimiterStepsAsFastAsItCan) {
  Options options = free_run();
  options.step = 100e-6;
  EXPECT_NEAR(of(options).actor_steps, 10000, 100);
  options.chunk = 256 * 100e-6;  // chunks of 256 steps take as long as their steps
  EXPECT_NEAR(of(options).actor_steps, 5000, 100);
  EXPECT_EQ(of(options).flush_steps, 256);
}

TEST(Simulate, ActorsShareTheCoresOfTheirHosts) {
  Options options = free_run();
  options.step = 100e-6;
  options.cores = 2;
  options.full_speed = 0.8;
  options.actors = 4;
  EXPECT_NEAR(of(options).actor_steps, 16000, 200);
  options.hosts = 3;  // the first one is the learner's
  EXPECT_NEAR(of(options).actor_steps, 32000, 400);
  EXPECT_EQ(of(options).limit, "the environment actors");
}

TEST(Simulate, OldChunksLeaveBeforeTheyAreFull) {
  Options options = free_run();
  options.step = 10e-3;
  options.chunk = 10e-3;  // one in every 50 ms of steps
  const double steps = of(options).actor_steps;
  EXPECT_GT(steps, 100 * 5.0 / 6 * 0.9);
  EXPECT_LT(steps, 100 * 7.0 / 8 * 1.1);
}

TEST(Simulate, ALearnerThatIsSlowerHoldsTheActorsBack) {
  const Figures figures = of(learning_run());
  EXPECT_NEAR(figures.updates, 200, 2);
  EXPECT_NEAR(figures.actor_steps, 200 * 256 / 32.0, 30);
  EXPECT_NEAR(figures.samples_per_insert, 32, 1);
  EXPECT_GT(figures.actors_blocked, 0.7);
  EXPECT_LT(figures.learner_starved, 0.02);
  EXPECT_EQ(figures.limit, "the learners");
}

TEST(Simulate, ActorsThatAreSlowerHoldTheLearnerBack) {
  Options options = learning_run();
  options.step = 2e-3;
  options.warm_up = 4;
  const Figures figures = of(options);
  EXPECT_NEAR(figures.actor_steps, 500, 10);
  EXPECT_NEAR(figures.updates, 500 * 32 / 256.0, 2);
  EXPECT_GT(figures.learner_starved, 0.5);
  EXPECT_EQ(figures.limit, "the environment actors");
}

TEST(Simulate, ShardsElsewhereKeepTheSameRatio) {
  Options options = learning_run();
  options.shards = 4;
  options.actors = 8;
  options.shards_with_learner = false;
  options.hosts = 4;
  options.latency = 50e-6;
  options.gradient_bytes = 0;
  const Figures figures = of(options);
  EXPECT_NEAR(figures.updates, 200, 5);
  EXPECT_NEAR(figures.actor_steps, 1600, 50);
  EXPECT_NEAR(figures.samples_per_insert, 32, 1);
}

TEST(Simulate, LearnersDivideABatchAndReduceTheirGradients) {
  Options options = learning_run();
  options.shards = 2;
  options.shards_with_learner = false;
  options.hosts = 4;
  options.learners = 4;
  options.step = 10e-6;
  options.update = 1e-3;
  options.update_item = 4e-3 / 256;  // 1 ms for a quarter of the batch
  options.latency = 0;
  options.gradient_bytes = 2e6;
  options.bandwidth = 1e9;  // 2 x 3/4 x 2 ms
  const Figures figures = of(options);
  EXPECT_NEAR(figures.updates, 1 / (1e-3 + 1e-3 + 3e-3), 8);
  EXPECT_EQ(figures.limit, "the learners' all-reduce");
}

TEST(Simulate, ParameterSetsForManyActorsFillALink) {
  Options options = learning_run();
  options.actors = 64;
  options.hosts = 9;
  options.shards_with_learner = false;
  options.publish_every = 1;
  options.parameter_bytes = 1e6;
  options.bandwidth = 1e9;  // 15 times a second to all of them
  options.min_size = 20000;
  options.step = 1e-3;
  options.update = 1e-3;
  const Figures figures = of(options);
  EXPECT_GT(figures.sends, 0.9);
  EXPECT_GT(figures.policy_lag, figures.updates / 40);
}

TEST(Simulate, TheSameSeedGivesTheSameFigures) {
  Options options = learning_run();
  options.actors = 5;
  options.shards = 3;
  options.shards_with_learner = false;
  const Figures first = of(options), second = of(options);
  EXPECT_EQ(first.events, second.events);
  EXPECT_EQ(first.actor_steps, second.actor_steps);
  EXPECT_EQ(first.policy_lag, second.policy_lag);
}

TEST(Simulate, RefusesWhatMakesNoSense) {
  Options options;
  options.actors = 0;
  EXPECT_NE(simulate(options).error().message.find("'actors'"), std::string::npos);
  options.actors = 1;
  options.bandwidth = 0;
  EXPECT_NE(simulate(options).error().message.find("'bandwidth'"), std::string::npos);
  options.bandwidth = 1;
  options.learners = 2;
  EXPECT_NE(simulate(options).error().message.find("shards"), std::string::npos);
}

}  // namespace
}  // namespace troupe::actors::simulation
