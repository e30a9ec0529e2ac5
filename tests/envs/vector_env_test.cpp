// Automatic resets that lose nothing, actions that stay in bounds, and faults that stay out of
// experience.
#include "envs/vector_env.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "envs/dmc/suite_task.hpp"
#include "envs/time_limit.hpp"
#include "tests/envs/helpers.hpp"

namespace troupe::envs {
namespace {

using ::testing::HasSubstr;
using testing::make_fake;
using testing::Runner;
using testing::value_of;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

TEST(VectorEnv, GivesExactlyTStepsPerEpisode) {
  Runner runner("probe/term@5", 3, 1);
  runner.reset();
  for (int step = 1; step <= 50; ++step)
    for (const StepResult& result : runner.step()) EXPECT_EQ(result.ended(), step % 5 == 0);
  EXPECT_EQ(runner.envs->counters().episodes, 30);
  EXPECT_EQ(runner.envs->counters().steps, 150);
}

TEST(VectorEnv, LinksEachObservationToItsOwnSuccessor) {
  constexpr float kSteps = 5;
  Runner runner("probe/term@5", 2, 1);
  runner.reset();
  for (int step = 0; step < 50; ++step) {
    const float before = runner.observations[1];
    const StepResult result = runner.step()[1];
    const float after =
        result.ended() ? runner.envs->final_observation(1)[0] : runner.observations[1];
    EXPECT_NEAR(after, before + 1 / kSteps, 1e-6);
    EXPECT_EQ(result.terminated, after == 1);
    if (result.ended()) {
      EXPECT_EQ(runner.observations[1], 0) << "the next episode starts in the same call";
      EXPECT_EQ(result.episode_steps, 5);
      EXPECT_EQ(result.episode_return, 5);
    }
  }
}

TEST(VectorEnv, KeepsTheLastObservationOfATruncatedEpisodeApartFromTheNextFirst) {
  Runner runner("dmc/cartpole_swingup", 2, 1, 0, {.time_limit = 20});
  runner.reset();
  Random random(2);
  for (int step = 1; step <= 20; ++step) {
    const auto results = runner.step(random);
    EXPECT_EQ(results[0].truncated, step == 20);
    EXPECT_FALSE(results[0].terminated);
  }
  const auto last = runner.envs->final_observation(0);
  const std::vector<float> next(runner.observations.begin(), runner.observations.begin() + 5);
  EXPECT_NE(std::vector<float>(last.begin(), last.end()), next);
  EXPECT_NEAR(next[1], -1, 1e-2) << "a fresh episode hangs";
}

TEST(VectorEnv, AppliesActionsInsideTheBoundsAndReportsWhatItApplied) {
  Runner runner("probe/box", 4, 1);
  runner.reset();
  Random random(7);
  for (int step = 0; step < 200; ++step) {
    for (float& action : runner.actions) action = static_cast<float>(3 * random.normal());
    const auto results = runner.step();
    for (std::int64_t i = 0; i < 4; ++i) {
      const auto index = static_cast<std::size_t>(i);
      const auto received = results[index].ended()
                                ? runner.envs->final_observation(i)
                                : std::span<const float>(runner.observations).subspan(2 * index, 2);
      ASSERT_GE(received[0], -0.4F);
      ASSERT_LE(received[0], 0.4F);
      ASSERT_GE(received[1], 0);
      ASSERT_LE(received[1], 10);
      const auto applied = runner.envs->applied_actions().subspan(2 * index, 2);
      ASSERT_EQ(applied[0], std::clamp(runner.actions[2 * index], -1.0F, 1.0F));
      ASSERT_NEAR(received[0], 0.4 * applied[0], 1e-6);
      ASSERT_NEAR(received[1], 5 + 5 * applied[1], 1e-5);
    }
  }
}

TEST(VectorEnv, RefusesATaskWithUnboundedActions) {
  const auto envs = VectorEnv::make("probe/unbounded", {}, 1, 1);
  ASSERT_FALSE(envs);
  EXPECT_THAT(envs.error().message, HasSubstr("'probe/unbounded'"));
  EXPECT_THAT(envs.error().message, HasSubstr("component 0"));
  EXPECT_THAT(envs.error().message, HasSubstr("not finite"));
}

TEST(VectorEnv, DropsAnEpisodeWithANanRewardAndGoesOn) {
  Runner runner("probe/nan@7", 2, 1, 0, {.time_limit = 10});
  runner.reset();
  for (int step = 1; step <= 27; ++step) {
    for (const StepResult& result : runner.step()) {
      EXPECT_EQ(result.invalid, step == 7);
      EXPECT_TRUE(std::isfinite(result.reward));
      EXPECT_EQ(result.truncated, step == 17 || step == 27);
      if (!result.invalid) continue;
      EXPECT_EQ(result.episode_steps, 6);
      EXPECT_THAT(result.reason, HasSubstr("step 7 of its episode 1: its reward is nan"));
    }
  }
  const VectorEnvCounters expected{
      .steps = 52, .episodes = 4, .invalid_episodes = 2, .nan_transitions = 2};
  EXPECT_EQ(runner.envs->counters(), expected);
}

TEST(VectorEnv, NeverWritesAnObservationThatIsNotFinite) {
  Runner runner("probe/nan@3:observation", 1, 1);
  runner.reset();
  for (int step = 1; step <= 10; ++step) {
    const StepResult result = runner.step()[0];
    EXPECT_EQ(result.invalid, step == 3);
    EXPECT_TRUE(std::isfinite(runner.observations[0]));
  }
  EXPECT_EQ(runner.envs->counters().nan_transitions, 1);
}

TEST(VectorEnv, CountsValuesBeyondFloatAsNotFinite) {
  auto [runner, fake] = make_fake();
  runner.reset();
  fake->on_step = [](auto) { return Transition{.reward = 1e300}; };
  EXPECT_TRUE(runner.step()[0].invalid);
  fake->on_step = [](auto) { return Transition{.reward = 1}; };
  EXPECT_FALSE(runner.step()[0].invalid);
  EXPECT_EQ(runner.envs->counters().nan_transitions, 1);
}

TEST(VectorEnv, TurnsAnExceptionIntoAnInvalidEpisode) {
  Runner runner("probe/crash@4:throw", 2, 1);
  runner.reset();
  for (int step = 1; step <= 8; ++step)
    for (const StepResult& result : runner.step()) {
      EXPECT_EQ(result.invalid, step == 4);
      if (result.invalid) {
        EXPECT_THAT(result.reason, HasSubstr("throws as asked"));
      }
    }
  EXPECT_EQ(runner.envs->counters().exceptions, 2);
}

TEST(VectorEnv, SurvivesAThrowOfSomethingElse) {
  auto [runner, fake] = make_fake();
  runner.reset();
  fake->on_step = [](auto) -> Result<Transition> { throw 7; };
  EXPECT_TRUE(runner.step()[0].invalid);
  EXPECT_EQ(runner.envs->counters().exceptions, 1);
}

TEST(VectorEnv, DoesNotStepAnEnvironmentWhoseActionIsNan) {
  auto [runner, fake] = make_fake();
  runner.reset();
  runner.actions[0] = kNan;
  const StepResult result = runner.step()[0];
  EXPECT_TRUE(result.invalid);
  EXPECT_THAT(result.reason, HasSubstr("action component 0 is NaN"));
  EXPECT_EQ(fake->steps, 0);
  EXPECT_EQ(fake->resets, 2);
  EXPECT_EQ(runner.envs->counters().nan_actions, 1);
  EXPECT_EQ(runner.envs->counters().nan_transitions, 0);
}

TEST(VectorEnv, SkipsAStartThatFailsAndGivesUpWhenAllDo) {
  auto [runner, fake] = make_fake();
  testing::FakeEnv& env = *fake;
  env.on_reset = [&env](std::uint64_t) -> Result<void> {
    if (env.resets < 3) return fail(ErrorCode::kInvalidEpisode, "fell through the floor");
    return {};
  };
  runner.reset();
  EXPECT_EQ(env.resets, 3);

  env.on_reset = [](std::uint64_t) -> Result<void> {
    return fail(ErrorCode::kInvalidEpisode, "fell through the floor");
  };
  env.on_step = [](auto) { return Transition{.terminated = true}; };
  const auto results = runner.envs->step(runner.actions, runner.observations);
  ASSERT_FALSE(results);
  EXPECT_THAT(results.error().message, HasSubstr("environment 0 ('fake') cannot start"));
  EXPECT_THAT(results.error().message, HasSubstr("fell through the floor"));
  EXPECT_FALSE(runner.envs->step(runner.actions, runner.observations)) << "it needs a reset first";
}

TEST(VectorEnv, ReportsMujocoResettingItselfAsAnInvalidEpisode) {
  std::vector<std::unique_ptr<Env>> envs;
  envs.push_back(value_of(make_env("dmc/walker_walk")));
  auto* task = dynamic_cast<dmc::SuiteTask*>(&dynamic_cast<TimeLimit&>(*envs[0]).inner());
  ASSERT_NE(task, nullptr);
  Runner runner(value_of(VectorEnv::make(std::move(envs), 1)));
  runner.reset();
  EXPECT_FALSE(runner.step()[0].invalid);

  task->simulation().d()->qvel[3] = 1e15;
  const StepResult result = runner.step()[0];
  EXPECT_TRUE(result.invalid);
  EXPECT_FALSE(result.truncated);
  EXPECT_THAT(result.reason, HasSubstr("environment 0 ('dmc/walker_walk'), step 2"));
  EXPECT_THAT(result.reason, HasSubstr("MuJoCo warned"));
  EXPECT_EQ(runner.envs->counters().env_errors, 1);
  for (int step = 0; step < 20; ++step) EXPECT_FALSE(runner.step()[0].invalid);
}

TEST(VectorEnv, RefusesBuffersOfAnotherSizeAndStepsBeforeReset) {
  auto envs = value_of(VectorEnv::make("pendulum", {}, 2, 1));
  std::vector<float> observations(6), actions(2), few(1);
  EXPECT_THAT(envs->step(actions, observations).error().message, HasSubstr("before its reset"));
  EXPECT_FALSE(envs->reset(few));
  testing::expect_ok(envs->reset(observations));
  EXPECT_THAT(envs->step(few, observations).error().message, HasSubstr("1 floats, not 2"));
  EXPECT_THAT(envs->step(actions, few).error().message, HasSubstr("1 floats, not 6"));
  EXPECT_TRUE(envs->step(actions, observations));
}

TEST(VectorEnv, RefusesEmptyMixedAndPixelEnvironments) {
  EXPECT_FALSE(VectorEnv::make("pendulum", {}, 0, 1));
  EXPECT_FALSE(VectorEnv::make({}, 1));
  std::vector<std::unique_ptr<Env>> mixed;
  mixed.push_back(value_of(make_env("pendulum")));
  mixed.push_back(value_of(make_env("probe/const")));
  EXPECT_THAT(VectorEnv::make(std::move(mixed), 1).error().message, HasSubstr("cannot mix"));
  auto camera = std::make_unique<testing::FakeEnv>();
  camera->spec_.observations.push_back(
      {.name = "camera", .dtype = DType::kU8, .shape = {84, 84, 3}});
  std::vector<std::unique_ptr<Env>> pixels;
  pixels.push_back(std::move(camera));
  EXPECT_THAT(VectorEnv::make(std::move(pixels), 1).error().message, HasSubstr("'camera'"));
}

}  // namespace
}  // namespace troupe::envs
