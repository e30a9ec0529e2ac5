// Where the control-suite tasks start, how long they last, and what they may reward.
#include "envs/dmc/tasks.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "envs/dmc/suite_task.hpp"
#include "tests/envs/helpers.hpp"

namespace troupe::envs::dmc {
namespace {

using envs::testing::expect_ok;
using envs::testing::Runner;
using envs::testing::value_of;

constexpr double kPi = std::numbers::pi;

// The task without its time limit, so that its simulation can be seen.
std::unique_ptr<SuiteTask> task_of(Result<std::unique_ptr<Env>> made) {
  return std::unique_ptr<SuiteTask>(dynamic_cast<SuiteTask*>(value_of(std::move(made)).release()));
}

// Mean and standard deviation of one number over many starts.
struct Moments {
  double mean = 0, deviation = 0;
};
template <class Function>
Moments over_starts(SuiteTask& task, int starts, Function&& number) {
  double sum = 0, squares = 0;
  for (int seed = 0; seed < starts; ++seed) {
    expect_ok(task.reset(static_cast<std::uint64_t>(seed)));
    const double value = number(*task.simulation().d());
    sum += value;
    squares += value * value;
  }
  const double mean = sum / starts;
  return {mean, std::sqrt(squares / starts - mean * mean)};
}

TEST(SuiteTasks, LastAThousandStepsAndAreTruncatedNotTerminated) {
  for (const char* name : {"dmc/cartpole_swingup", "dmc/cheetah_run", "dmc/walker_walk"}) {
    Runner runner(name, 1, 1);
    runner.reset();
    Random random(1);
    for (int step = 1; step <= 1000; ++step) {
      const StepResult result = runner.step(random)[0];
      ASSERT_GE(result.reward, 0) << name;
      ASSERT_LE(result.reward, 1) << name;
      ASSERT_EQ(result.truncated, step == 1000) << name;
      ASSERT_FALSE(result.terminated || result.invalid) << name << result.reason;
    }
  }
}

TEST(Cartpole, HangsAtTheStartOfSwingup) {
  auto task = task_of(make_cartpole("c", CartpoleStart::kHanging));
  const Moments cart = over_starts(*task, 2000, [](const mjData& d) { return d.qpos[0]; });
  const Moments pole = over_starts(*task, 2000, [](const mjData& d) { return d.qpos[1]; });
  const Moments speed = over_starts(*task, 2000, [](const mjData& d) { return d.qvel[1]; });
  EXPECT_NEAR(cart.mean, 0, 0.0012);  // 5 standard errors
  EXPECT_NEAR(pole.mean, kPi, 0.0012);
  for (const Moments& moments : {cart, pole, speed}) EXPECT_NEAR(moments.deviation, 0.01, 0.001);
}

TEST(Cartpole, StandsAtTheStartOfBalance) {
  auto task = task_of(make_cartpole("c", CartpoleStart::kUpright));
  const Moments cart = over_starts(*task, 2000, [](const mjData& d) { return d.qpos[0]; });
  const Moments pole = over_starts(*task, 2000, [](const mjData& d) { return d.qpos[1]; });
  EXPECT_NEAR(cart.deviation, 0.1 / std::sqrt(3), 0.003);
  EXPECT_NEAR(pole.deviation, 0.034 / std::sqrt(3), 0.001);
}

TEST(Cheetah, SettlesOnTheGroundWithItsClockAtZero) {
  auto task = task_of(make_cheetah("c"));
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    expect_ok(task->reset(seed));
    const mjData& d = *task->simulation().d();
    EXPECT_EQ(d.time, 0);
    EXPECT_GT(d.ncon, 0) << "it stands on the ground after two seconds";
    EXPECT_LT(d.qpos[1], 0.2) << "it has fallen";
    for (int i = 0; i < 9; ++i) ASSERT_LT(std::abs(d.qvel[i]), 5);
  }
}

TEST(Walker, StartsWithJointsInRangeAndTheTorsoTurnedAnyhow) {
  auto task = task_of(make_walker("w", 1));
  const mjModel& m = *task->simulation().m();
  int upright = 0;
  constexpr int kStarts = 2000;
  for (int seed = 0; seed < kStarts; ++seed) {
    expect_ok(task->reset(static_cast<std::uint64_t>(seed)));
    const mjData& d = *task->simulation().d();
    for (int joint = 0; joint < m.njnt; ++joint) {
      if (!m.jnt_limited[joint]) continue;
      ASSERT_GE(d.qpos[joint], m.jnt_range[2 * joint]);
      ASSERT_LE(d.qpos[joint], m.jnt_range[2 * joint + 1]);
    }
    ASSERT_EQ(d.qpos[0], 0) << "slides are not randomized";
    upright += std::abs(d.qpos[2]) < kPi / 2;
  }
  EXPECT_NEAR(upright, kStarts / 2, 112);  // 5 standard deviations
}

TEST(Walker, RewardsSpeedOnlyWhenAskedTo) {
  auto stand = task_of(make_walker("w", 0)), walk = task_of(make_walker("w", 1));
  const std::array<double, 6> still{};
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    expect_ok(stand->reset(seed));
    expect_ok(walk->reset(seed));
    const double standing = value_of(stand->step(still)).reward;
    const double walking = value_of(walk->step(still)).reward;
    EXPECT_LE(walking, standing);
    EXPECT_GE(walking, standing / 6 - 1e-12);
  }
}

}  // namespace
}  // namespace troupe::envs::dmc
