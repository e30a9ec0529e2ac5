// Each probe does what its description promises.
#include "envs/probes.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/envs/helpers.hpp"

namespace troupe::envs::probes {
namespace {

using envs::testing::expect_ok;
using envs::testing::value_of;

constexpr double kNoAction[] = {0};

double observation_of(const Env& env) {
  std::vector<double> values(static_cast<std::size_t>(env.spec().observation_size()));
  env.observe(values);
  return values[0];
}

TEST(ProbeConst, GivesOneForFiftySteps) {
  auto env = value_of(make_env("probe/const"));
  expect_ok(env->reset(0));
  for (int step = 1; step <= 50; ++step) {
    const Transition transition = value_of(env->step(kNoAction));
    EXPECT_EQ(transition.reward, 1);
    EXPECT_FALSE(transition.terminated);
    EXPECT_EQ(transition.truncated, step == 50);
  }
}

TEST(ProbeTerm, ObservesItsProgressAndTerminatesWithoutTruncation) {
  auto env = value_of(make_env("probe/term@4"));
  expect_ok(env->reset(0));
  EXPECT_EQ(observation_of(*env), 0);
  for (int step = 1; step <= 4; ++step) {
    const Transition transition = value_of(env->step(kNoAction));
    EXPECT_EQ(observation_of(*env), step / 4.0);
    EXPECT_EQ(transition.terminated, step == 4);
    EXPECT_FALSE(transition.truncated);
  }
}

TEST(ProbeNan, SpoilsOneRewardOfItsLife) {
  auto env = value_of(make_env("probe/nan@5", {.time_limit = 3}));
  int step = 0;
  for (int episode = 0; episode < 3; ++episode) {
    expect_ok(env->reset(0));
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(std::isnan(value_of(env->step(kNoAction)).reward), ++step == 5);
      EXPECT_EQ(observation_of(*env), 1);
    }
  }
}

TEST(ProbeNan, SpoilsOneObservationButNotTheOneAfterReset) {
  auto env = value_of(make_env("probe/nan@2:observation"));
  expect_ok(env->reset(0));
  EXPECT_EQ(value_of(env->step(kNoAction)).reward, 1);
  EXPECT_EQ(observation_of(*env), 1);
  EXPECT_EQ(value_of(env->step(kNoAction)).reward, 1);
  EXPECT_TRUE(std::isnan(observation_of(*env)));
  expect_ok(env->reset(0));
  EXPECT_EQ(observation_of(*env), 1);
}

TEST(ProbeCrash, ThrowsAtItsStep) {
  auto env = value_of(make_env("probe/crash@2:throw"));
  expect_ok(env->reset(0));
  EXPECT_NO_THROW((void)env->step(kNoAction));
  EXPECT_THROW((void)env->step(kNoAction), std::runtime_error);
}

TEST(ProbeCrashDeathTest, AbortsWithALastLine) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  auto env = value_of(make_env("probe/crash@1:abort"));
  expect_ok(env->reset(0));
  EXPECT_DEATH((void)env->step(kNoAction), "probe/crash at step 1 aborts as asked");
}

TEST(ProbeSeed, ObservesTheFirstDrawsOfItsSeed) {
  auto env = value_of(make_env("probe/seed"));
  expect_ok(env->reset(12));
  Random random(12);
  EXPECT_EQ(observation_of(*env), random.uniform());
  EXPECT_EQ(value_of(env->step(kNoAction)).reward, random.uniform());
}

TEST(ProbeBig, ObservesEightMebibytes) {
  auto env = value_of(make_env("probe/big"));
  EXPECT_EQ(env->spec().observation_size() * 4, 8 << 20);
  expect_ok(env->reset(0));
  (void)value_of(env->step(kNoAction));
  std::vector<double> values(static_cast<std::size_t>(env->spec().observation_size()));
  env->observe(values);
  EXPECT_EQ(values.front(), 1);
  EXPECT_EQ(values.back(), 1);
}

}  // namespace
}  // namespace troupe::envs::probes
