// The benchmark compares equal work; its speed is not tested here.
#include "envs/benchmark.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe::envs {
namespace {

using ::testing::HasSubstr;

TEST(EnvBenchmark, CountsSettlingStepsAndComparesEqualWork) {
  const auto cheetah =
      benchmark_env({.task = "dmc/cheetah_run", .rounds = 5, .episodes = 1, .seed = 3});
  ASSERT_TRUE(cheetah) << cheetah.error().message;
  EXPECT_EQ(cheetah->control_steps, 1000);
  EXPECT_EQ(cheetah->physics_steps, 1200);
  EXPECT_FALSE(cheetah->evaluates_again);
  EXPECT_GT(cheetah->ratio.min, 0);
  EXPECT_LE(cheetah->ratio.min, cheetah->ratio.median);
  EXPECT_LE(cheetah->ratio.median, cheetah->ratio.max);
}

TEST(EnvBenchmark, RunsTheOtherDomains) {
  for (const char* name : {"dmc/cartpole_swingup", "dmc/walker_walk"}) {
    const auto result = benchmark_env({.task = name, .rounds = 5, .episodes = 1});
    ASSERT_TRUE(result) << result.error().message;
    EXPECT_EQ(result->evaluates_again, std::string_view(name) == "dmc/cartpole_swingup");
  }
}

TEST(EnvBenchmark, RefusesTasksWithoutPhysicsAndTooFewRounds) {
  EXPECT_THAT(benchmark_env({.task = "pendulum"}).error().message, HasSubstr("no physics"));
  EXPECT_THAT(benchmark_env({.task = "dmc/cheetah_run", .rounds = 4}).error().message,
              HasSubstr("at least 5 rounds"));
  EXPECT_THAT(benchmark_env({.task = "dmc/chetah_run"}).error().message, HasSubstr("did you mean"));
}

}  // namespace
}  // namespace troupe::envs
