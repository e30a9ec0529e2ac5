// A saved VectorEnv goes on to the bit, and damaged bytes are refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "envs/registry.hpp"
#include "tests/envs/helpers.hpp"

namespace troupe::envs {
namespace {

using ::testing::HasSubstr;
using testing::Runner;

// Everything visible of `steps` further steps.
std::vector<double> trace(Runner& runner, Random random, int steps) {
  std::vector<double> all;
  for (int step = 0; step < steps; ++step) {
    for (const StepResult& result : runner.step(random)) {
      all.push_back(result.reward);
      all.push_back(result.episode_return);
      all.push_back(static_cast<double>(result.episode_steps));
      all.push_back(result.truncated + 2 * result.terminated + 4 * result.invalid);
    }
    for (std::int64_t i = 0; i < runner.envs->count(); ++i) {
      const auto row = runner.envs->observation(i);
      all.insert(all.end(), row.begin(), row.end());
    }
    all.insert(all.end(), runner.observations.begin(), runner.observations.end());
  }
  return all;
}

std::string refusal(std::string_view name, std::int64_t count,
                    std::span<const std::uint8_t> bytes) {
  Runner runner(name, count, 1);
  const Result<void> loaded = runner.envs->load_state(bytes);
  if (loaded) return "was loaded";
  EXPECT_EQ(loaded.error().code, ErrorCode::kCorrupt) << loaded.error().message;
  EXPECT_FALSE(runner.envs->step(runner.actions, runner.observations)) << "it needs a reset first";
  return loaded.error().message;
}

TEST(VectorEnvState, GoesOnToTheBitInEveryTaskAcrossEpisodes) {
  std::vector<std::string> names = testing::ordinary_tasks();
  names.insert(names.end(), {"probe/nan@45", "probe/nan@45:observation", "probe/crash@45:throw"});
  for (const std::string& name : names) {
    Runner original(name, 3, 21, 2, {.time_limit = 30});
    original.reset();
    Random random(6);
    for (int step = 0; step < 37; ++step) (void)original.step(random);
    const std::vector<std::uint8_t> state = original.envs->save_state();

    Runner restored(name, 3, 999, 0, {.time_limit = 30});
    testing::expect_ok(restored.envs->load_state(state, restored.observations));
    EXPECT_EQ(restored.observations, original.observations) << name;
    EXPECT_EQ(trace(restored, random, 50), trace(original, random, 50)) << name;
    EXPECT_EQ(restored.envs->counters(), original.envs->counters()) << name;
  }
}

TEST(VectorEnvState, IsSameAgainWhenSavedRightAfterLoading) {
  for (const char* name : {"dmc/cheetah_run", "dmc/cartpole_swingup", "probe/seed"}) {
    Runner original(name, 2, 21);
    original.reset();
    Random random(6);
    for (int step = 0; step < 5; ++step) (void)original.step(random);
    const std::vector<std::uint8_t> state = original.envs->save_state();
    Runner restored(name, 2, 1);
    testing::expect_ok(restored.envs->load_state(state));
    EXPECT_EQ(restored.envs->save_state(), state) << name;
  }
}

TEST(VectorEnvState, SavesBeforeTheFirstReset) {
  Runner fresh("probe/seed", 2, 5), other("probe/seed", 2, 6);
  testing::expect_ok(other.envs->load_state(fresh.envs->save_state()));
  fresh.reset();
  other.reset();
  EXPECT_EQ(other.observations, fresh.observations);
}

TEST(VectorEnvState, RefusesEveryTruncation) {
  for (const char* name : {"pendulum", "dmc/cartpole_swingup"}) {
    Runner runner(name, 2, 1);
    runner.reset();
    const std::vector<std::uint8_t> state = runner.envs->save_state();
    for (std::size_t size = 0; size < state.size(); size += 7)
      EXPECT_THAT(refusal(name, 2, std::span(state).first(size)), HasSubstr(name)) << size;
    std::vector<std::uint8_t> longer = state;
    longer.push_back(0);
    EXPECT_THAT(refusal(name, 2, longer), HasSubstr("longer"));
  }
}

TEST(VectorEnvState, RefusesAnotherTaskCountLimitOrVersion) {
  Runner runner("pendulum", 2, 1);
  runner.reset();
  std::vector<std::uint8_t> state = runner.envs->save_state();
  EXPECT_THAT(refusal("probe/const", 2, state), HasSubstr("another task"));
  EXPECT_THAT(refusal("pendulum", 3, state), HasSubstr("2 environments, not 3"));
  state[4] = 99;
  EXPECT_THAT(refusal("pendulum", 2, state), HasSubstr("version 99"));
  state[0] ^= 1;
  EXPECT_THAT(refusal("pendulum", 2, state), HasSubstr("does not begin"));
}

// Whatever the bytes say, what comes out is refused or finite.
TEST(VectorEnvState, SurvivesRandomDamage) {
  for (const char* name : {"dmc/cartpole_swingup", "dmc/walker_walk", "probe/seed"}) {
    Runner runner(name, 2, 1);
    runner.reset();
    const std::vector<std::uint8_t> state = runner.envs->save_state();
    Random random(17);
    Runner victim(name, 2, 1);
    for (int trial = 0; trial < 300; ++trial) {
      std::vector<std::uint8_t> damaged = state;
      for (int i = 0; i < 3; ++i)
        damaged[random.below(damaged.size())] ^= static_cast<std::uint8_t>(1 + random.below(255));
      if (!victim.envs->load_state(damaged, victim.observations)) continue;
      for (const float value : victim.observations) ASSERT_TRUE(std::isfinite(value));
      if (!victim.envs->step(victim.actions, victim.observations)) continue;
      for (const float value : victim.observations) ASSERT_TRUE(std::isfinite(value));
    }
  }
}

}  // namespace
}  // namespace troupe::envs
