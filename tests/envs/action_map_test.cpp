// Policy units to bounds and back; rows of actions that must never leave them.
#include "envs/action_map.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/envs/helpers.hpp"

namespace troupe::envs {
namespace {

using ::testing::HasSubstr;
using testing::value_of;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

ActionSpec bounds(std::vector<double> low, std::vector<double> high) {
  ActionSpec spec;
  spec.low = std::move(low);
  spec.high = std::move(high);
  return spec;
}

TEST(ActionMap, ReachesBothEndsOfAsymmetricBoundsExactly) {
  const ActionMap map = value_of(ActionMap::make(bounds({-0.4, 0}, {0.4, 10}), "box"));
  std::array<double, 2> action{};
  map.to_environment(std::array{-1.0F, 1.0F}, action);
  EXPECT_THAT(action, ::testing::ElementsAre(-0.4, 10));
  map.to_environment(std::array{1.0F, -1.0F}, action);
  EXPECT_THAT(action, ::testing::ElementsAre(0.4, 0));
  map.to_environment(std::array{0.0F, 0.0F}, action);
  EXPECT_THAT(action, ::testing::ElementsAre(0, 5));
}

TEST(ActionMap, ClipsWhatNoisePushesOutside) {
  const ActionMap map = value_of(ActionMap::make(bounds({-1, -1, -1}, {1, 1, 1}), "box"));
  std::array<float, 3> stored{};
  testing::expect_ok(map.clip(std::array{3.5F, -kInfinity, 0.25F}, stored));
  EXPECT_THAT(stored, ::testing::ElementsAre(1, -1, 0.25));
}

TEST(ActionMap, NamesTheComponentThatIsNan) {
  const ActionMap map = value_of(ActionMap::make(bounds({-1, -1}, {1, 1}), "box"));
  std::array<float, 2> stored{};
  const Result<void> clipped = map.clip(std::array{0.0F, kNan}, stored);
  ASSERT_FALSE(clipped);
  EXPECT_EQ(clipped.error().code, ErrorCode::kNotFinite);
  EXPECT_THAT(clipped.error().message, HasSubstr("component 1 is NaN"));
}

TEST(ActionMap, RoundTripsWithinFloatPrecisionAndStaysInBounds) {
  Random random(3);
  for (int trial = 0; trial < 2000; ++trial) {
    const double low = random.uniform(-1e3, 1e3), high = low + random.uniform(1e-3, 1e3);
    const ActionMap map = value_of(ActionMap::make(bounds({low}, {high}), "box"));
    const std::array stored{static_cast<float>(random.uniform(-1, 1))};
    std::array<double, 1> action{};
    map.to_environment(stored, action);
    ASSERT_GE(action[0], low);
    ASSERT_LE(action[0], high);
    std::array<float, 1> back{};
    map.to_policy(action, back);
    ASSERT_NEAR(back[0], stored[0], 1e-5);
  }
}

TEST(ActionMap, LeavesUnitBoundsUntouchedToTheBit) {
  const ActionMap map = value_of(ActionMap::make(bounds({-1}, {1}), "box"));
  Random random(4);
  for (int trial = 0; trial < 1000; ++trial) {
    const std::array stored{static_cast<float>(random.uniform(-1, 1))};
    std::array<double, 1> action{};
    map.to_environment(stored, action);
    ASSERT_EQ(action[0], stored[0]);
  }
}

TEST(ActionMap, CopesWithBoundsThatMeetAndWithVeryWideOnes) {
  const double huge = std::numeric_limits<double>::max();
  const ActionMap map = value_of(ActionMap::make(bounds({2, -huge}, {2, huge}), "box"));
  std::array<double, 2> action{};
  map.to_environment(std::array{0.7F, 0.5F}, action);
  EXPECT_EQ(action[0], 2);
  EXPECT_NEAR(action[1] / huge, 0.5, 1e-9);
  std::array<float, 2> back{};
  map.to_policy(action, back);
  EXPECT_EQ(back[0], 0);
  EXPECT_NEAR(back[1], 0.5, 1e-6);
}

TEST(ActionMap, RefusesBoundsThatAreNotFiniteNamingComponentAndReason) {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const ActionSpec& spec : {bounds({-1, -infinity}, {1, 1}), bounds({-1, -1}, {1, infinity}),
                                 bounds({-1, std::nan("")}, {1, 1})}) {
    const auto map = ActionMap::make(spec, "walker");
    ASSERT_FALSE(map);
    EXPECT_EQ(map.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(map.error().message, HasSubstr("'walker'"));
    EXPECT_THAT(map.error().message, HasSubstr("component 1"));
    EXPECT_THAT(map.error().message, HasSubstr("not finite"));
  }
}

TEST(ActionMap, RefusesBoundsOutOfOrderOrMissing) {
  EXPECT_THAT(ActionMap::make(bounds({1}, {-1}), "x").error().message, HasSubstr("component 0"));
  EXPECT_THAT(ActionMap::make(bounds({1, 2}, {3}), "x").error().message,
              HasSubstr("2 lower and 1"));
  EXPECT_FALSE(ActionMap::make({}, "x"));
}

TEST(ActionMap, PassesDiscreteChoicesThrough) {
  ActionSpec spec;
  spec.discrete = true;
  spec.choices = 4;
  const ActionMap map = value_of(ActionMap::make(spec, "grid"));
  std::array<float, 1> stored{};
  for (const auto& [policy, wanted] :
       {std::pair{0.0F, 0.0F}, {2.0F, 2.0F}, {3.4F, 3.0F}, {9.0F, 3.0F}, {-1.0F, 0.0F}}) {
    testing::expect_ok(map.clip(std::array{policy}, stored));
    EXPECT_EQ(stored[0], wanted);
    std::array<double, 1> action{};
    map.to_environment(stored, action);
    EXPECT_EQ(action[0], wanted);
  }
  spec.choices = 0;
  EXPECT_FALSE(ActionMap::make(spec, "grid"));
}

}  // namespace
}  // namespace troupe::envs
