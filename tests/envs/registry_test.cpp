// The list of tasks: what it offers, what it refuses, and how it helps.
#include "envs/registry.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/envs/helpers.hpp"

namespace troupe::envs {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string refusal(std::string_view name, const EnvConfig& config = {}) {
  const auto env = make_env(name, config);
  return env ? "was made" : env.error().message;
}

TEST(Registry, MakesEveryOrdinaryTaskUnderItsOwnName) {
  for (const std::string& name : testing::ordinary_tasks()) {
    const auto env = make_env(name);
    ASSERT_TRUE(env) << env.error().message;
    EXPECT_EQ((*env)->spec().name, name);
    EXPECT_THAT(env_names(), ::testing::Contains(name));
  }
}

TEST(Registry, ListsEachNameOnceWithASummary) {
  std::vector<std::string> names = env_names();
  EXPECT_EQ(env_entries().size(), names.size());
  for (const EnvEntry& entry : env_entries()) EXPECT_FALSE(entry.summary.empty()) << entry.name;
  std::sort(names.begin(), names.end());
  EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end());
}

TEST(Registry, SuggestsTheNearestNameForASlip) {
  EXPECT_THAT(refusal("dmc/chetah_run"), HasSubstr("did you mean dmc/cheetah_run"));
  EXPECT_THAT(refusal("cartpole_swingup"), HasSubstr("did you mean dmc/cartpole_swingup"));
  EXPECT_THAT(refusal("pendulm"), HasSubstr("did you mean pendulum"));
  EXPECT_EQ(make_env("pendulm").error().code, ErrorCode::kNotFound);
}

TEST(Registry, SuggestsNothingForAStrangeName) {
  EXPECT_THAT(refusal("atari/breakout-v5"), Not(HasSubstr("did you mean")));
  EXPECT_THAT(refusal("atari/breakout-v5"), HasSubstr("'atari/breakout-v5'"));
  EXPECT_THAT(refusal(""), HasSubstr("no environment ''"));
}

TEST(Registry, RefusesArgumentsItCannotRead) {
  for (const char* name :
       {"probe/nan", "probe/nan@", "probe/nan@0", "probe/nan@-3", "probe/nan@7x",
        "probe/nan@7:action", "probe/crash@5", "probe/crash@5:explode", "probe/crash@:throw",
        "probe/const@zero", "probe/term@1.5", "probe/const@99999999999999999999"}) {
    const auto env = make_env(name);
    ASSERT_FALSE(env) << name;
    EXPECT_EQ(env.error().code, ErrorCode::kInvalidArgument) << name;
    EXPECT_THAT(env.error().message, HasSubstr("write probe/")) << name;
  }
  EXPECT_THAT(refusal("pendulum@3"), HasSubstr("takes no argument"));
}

TEST(Registry, OverridesTheTimeLimitAndRefusesANegativeOne) {
  EXPECT_EQ(testing::value_of(make_env("dmc/cheetah_run"))->spec().episode_steps, 1000);
  EXPECT_EQ(testing::value_of(make_env("dmc/cheetah_run", {.time_limit = 7}))->spec().episode_steps,
            7);
  EXPECT_EQ(testing::value_of(make_env("probe/const@20"))->spec().episode_steps, 20);
  EXPECT_EQ(testing::value_of(make_env("probe/term"))->spec().episode_steps, 0);
  EXPECT_THAT(refusal("pendulum", {.time_limit = -1}), HasSubstr("time limit"));
}

}  // namespace
}  // namespace troupe::envs
