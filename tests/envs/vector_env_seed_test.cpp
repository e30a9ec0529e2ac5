// Random streams: equal seeds give equal bits, everything else differs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <thread>

#include "tests/envs/helpers.hpp"

namespace troupe::envs {
namespace {

using testing::Runner;

// First observations of every environment of one worker, one vector each.
std::vector<std::vector<float>> first_observations(std::string_view name, std::int64_t count,
                                                   std::uint64_t seed, std::uint64_t worker = 0) {
  Runner runner(name, count, seed, worker);
  runner.reset();
  const auto size = runner.envs->observation_size();
  std::vector<std::vector<float>> rows;
  for (auto row = runner.observations.begin(); row != runner.observations.end(); row += size)
    rows.emplace_back(row, row + size);
  return rows;
}

// Reward sum of each environment over `steps` steps of random actions.
std::vector<double> reward_sums(std::string_view name, std::int64_t count, std::uint64_t seed,
                                int steps) {
  Runner runner(name, count, seed);
  runner.reset();
  Random random(5);
  std::vector<double> sums(static_cast<std::size_t>(count));
  for (int step = 0; step < steps; ++step) {
    const auto results = runner.step(random);
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += results[i].reward;
  }
  return sums;
}

TEST(VectorEnvSeeds, DifferBetweenWorkersAndRepeatBetweenRuns) {
  std::set<std::vector<float>> seen;
  for (std::uint64_t worker = 0; worker < 4; ++worker) {
    const auto first = first_observations("probe/seed", 1, 9, worker);
    EXPECT_EQ(first, first_observations("probe/seed", 1, 9, worker));
    EXPECT_TRUE(seen.insert(first[0]).second) << "worker " << worker << " repeats another's draws";
  }
}

TEST(VectorEnvSeeds, DifferBetweenTheEnvironmentsOfOneWorker) {
  for (const char* name : {"probe/seed", "dmc/cheetah_run", "dmc/walker_walk", "pendulum"}) {
    const auto rows = first_observations(name, 8, 3);
    EXPECT_EQ(std::set<std::vector<float>>(rows.begin(), rows.end()).size(), 8U) << name;
  }
}

TEST(VectorEnvSeeds, DifferBetweenTheEpisodesOfOneEnvironment) {
  Runner runner("probe/seed", 1, 3, 0, {.time_limit = 1});
  runner.reset();
  std::set<float> seen;
  for (int episode = 0; episode < 20; ++episode) {
    EXPECT_TRUE(seen.insert(runner.observations[0]).second);
    (void)runner.step();
  }
}

TEST(VectorEnvSeeds, TakeZeroForASeedLikeAny) {
  EXPECT_EQ(first_observations("probe/seed", 2, 0), first_observations("probe/seed", 2, 0));
  EXPECT_NE(first_observations("probe/seed", 2, 0), first_observations("probe/seed", 2, 1));
}

TEST(VectorEnvSeeds, AreNotChangedByAddingEnvironments) {
  const auto few = first_observations("probe/seed", 3, 11),
             many = first_observations("probe/seed", 9, 11);
  EXPECT_THAT(std::vector(many.begin(), many.begin() + 3), ::testing::ContainerEq(few));
}

TEST(VectorEnvSeeds, GiveTheSameBitsInTwoRunsOfThirtyTwoEnvironments) {
  for (const char* name : {"dmc/cartpole_swingup", "dmc/cheetah_run", "pendulum"})
    EXPECT_EQ(reward_sums(name, 32, 4, 60), reward_sums(name, 32, 4, 60)) << name;
}

TEST(VectorEnvSeeds, GiveTheSameBitsWhenTwoThreadsShareAModel) {
  const std::vector<double> alone = reward_sums("dmc/walker_walk", 4, 4, 40);
  std::vector<double> left, right;
  std::thread first([&] { left = reward_sums("dmc/walker_walk", 4, 4, 40); });
  std::thread second([&] { right = reward_sums("dmc/walker_walk", 4, 4, 40); });
  first.join();
  second.join();
  EXPECT_EQ(left, alone);
  EXPECT_EQ(right, alone);
}

TEST(VectorEnvSeeds, LetAnEpisodeBeReplayedFromItsSeed) {
  Runner runner("dmc/cartpole_swingup", 2, 8);
  runner.reset();
  auto env = testing::value_of(make_env("dmc/cartpole_swingup"));
  testing::expect_ok(env->reset(runner.envs->episode_seed(1)));
  std::vector<double> replayed(5);
  env->observe(replayed);
  EXPECT_THAT(runner.envs->observation(1), ::testing::ElementsAreArray(replayed));
}

}  // namespace
}  // namespace troupe::envs
