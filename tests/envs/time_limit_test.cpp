// Truncation is not termination, and the count survives a save.
#include "envs/time_limit.hpp"

#include <gtest/gtest.h>

#include "tests/envs/helpers.hpp"

namespace troupe::envs {
namespace {

using testing::value_of;

constexpr double kNoAction[] = {0};

TEST(TimeLimit, TruncatesExactlyAtTheLimitAndNeverTerminates) {
  auto env = value_of(make_env("probe/const@3"));
  for (int episode = 0; episode < 2; ++episode) {
    testing::expect_ok(env->reset(0));
    for (int step = 1; step <= 3; ++step) {
      const Transition transition = value_of(env->step(kNoAction));
      EXPECT_EQ(transition.truncated, step == 3);
      EXPECT_FALSE(transition.terminated);
    }
  }
}

TEST(TimeLimit, ReportsATerminationInTheLastStepAsBoth) {
  auto env = value_of(make_env("probe/term@2", {.time_limit = 2}));
  testing::expect_ok(env->reset(0));
  EXPECT_FALSE(value_of(env->step(kNoAction)).terminated);
  const Transition last = value_of(env->step(kNoAction));
  EXPECT_TRUE(last.terminated);
  EXPECT_TRUE(last.truncated);
}

TEST(TimeLimit, CountsOnAfterASave) {
  auto env = value_of(make_env("probe/const@4"));
  testing::expect_ok(env->reset(0));
  for (int step = 0; step < 3; ++step) (void)value_of(env->step(kNoAction));
  std::vector<std::uint8_t> state;
  env->save_state(state);
  auto other = value_of(make_env("probe/const@4"));
  testing::expect_ok(other->load_state(state));
  EXPECT_TRUE(value_of(other->step(kNoAction)).truncated);
}

TEST(TimeLimit, RefusesAStateBeyondTheLimit) {
  auto env = value_of(make_env("probe/const@4"));
  testing::expect_ok(env->reset(0));
  for (int step = 0; step < 3; ++step) (void)value_of(env->step(kNoAction));
  std::vector<std::uint8_t> state;
  env->save_state(state);
  auto shorter = value_of(make_env("probe/const@2"));
  const Result<void> loaded = shorter->load_state(state);
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().code, ErrorCode::kCorrupt);
}

}  // namespace
}  // namespace troupe::envs
