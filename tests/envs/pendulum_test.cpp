// The analytic pendulum against closed forms; agreement with Gymnasium itself is in
// dmc/parity_test.cpp.
#include "envs/pendulum.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "envs/state_bytes.hpp"
#include "tests/envs/helpers.hpp"

namespace troupe::envs {
namespace {

using testing::value_of;

constexpr double kPi = std::numbers::pi;

// A pendulum in the given state.
std::unique_ptr<Env> pendulum_at(double angle, double speed) {
  auto env = value_of(make_pendulum());
  std::vector<std::uint8_t> state;
  append(state, angle);
  append(state, speed);
  testing::expect_ok(env->load_state(state));
  return env;
}

double reward_of(double angle, double speed, double torque) {
  const double action[] = {torque};
  return value_of(pendulum_at(angle, speed)->step(action)).reward;
}

TEST(Pendulum, RewardsTheStateBeforeTheStep) {
  EXPECT_DOUBLE_EQ(reward_of(0, 0, 0), 0);
  EXPECT_DOUBLE_EQ(reward_of(0.5, 2, 1), -(0.25 + 0.1 * 4 + 0.001));
  EXPECT_DOUBLE_EQ(reward_of(kPi, 8, 2), -(kPi * kPi + 6.4 + 0.004));
}

TEST(Pendulum, WrapsTheAngleInTheRewardOnly) {
  EXPECT_NEAR(reward_of(0.5 + 2 * kPi, 0, 0), -0.25, 1e-12);
  EXPECT_NEAR(reward_of(-0.5 - 4 * kPi, 0, 0), -0.25, 1e-12);
}

TEST(Pendulum, HangsStillAndStandsStill) {
  const double none[] = {0};
  for (const double angle : {0.0, kPi}) {
    auto env = pendulum_at(angle, 0);
    for (int step = 0; step < 10; ++step) (void)value_of(env->step(none));
    std::array<double, 3> state{};
    env->observe(state);
    EXPECT_NEAR(state[0], std::cos(angle), 1e-9);
    EXPECT_NEAR(state[2], 0, 1e-9);
  }
}

TEST(Pendulum, AcceleratesByGravityAndTorque) {
  const double torque[] = {1};
  auto env = pendulum_at(kPi / 2, 0);
  (void)value_of(env->step(torque));
  std::array<double, 3> state{};
  env->observe(state);
  EXPECT_NEAR(state[2], (15 * 1 + 3 * 1) * 0.05, 1e-12);  // 3g/2l sin + 3/(ml²) u, over 50 ms
}

TEST(Pendulum, BoundsSpeedAndTorque) {
  const double much[] = {1e6};
  auto env = pendulum_at(0, 7.9);
  EXPECT_NEAR(value_of(env->step(much)).reward, -(0.1 * 7.9 * 7.9 + 0.004), 1e-12);
  for (int step = 0; step < 20; ++step) (void)value_of(env->step(much));
  std::array<double, 3> state{};
  env->observe(state);
  EXPECT_LE(std::abs(state[2]), 8);
}

TEST(Pendulum, StartsAnywhereOnTheCircleWithASmallSpeed) {
  auto env = value_of(make_pendulum());
  int upper = 0, right = 0, fast = 0;
  constexpr int kEpisodes = 4000;
  for (int seed = 0; seed < kEpisodes; ++seed) {
    testing::expect_ok(env->reset(static_cast<std::uint64_t>(seed)));
    std::array<double, 3> state{};
    env->observe(state);
    ASSERT_LE(std::abs(state[2]), 1);
    upper += state[0] > 0;
    right += state[1] > 0;
    fast += std::abs(state[2]) > 0.5;
  }
  // Each is half of the episodes; 5 standard deviations are 158.
  for (const int half : {upper, right, fast}) EXPECT_NEAR(half, kEpisodes / 2, 158);
}

}  // namespace
}  // namespace troupe::envs
