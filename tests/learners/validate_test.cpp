// Checks of the learning options: each message names its key.
#include "learners/validate.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <limits>

namespace troupe::learners {
namespace {

void expect_refused(const std::string& words, const std::function<void(LearnerOptions&)>& change) {
  LearnerOptions options;
  change(options);
  const Result<void> valid = validate(options);
  ASSERT_FALSE(valid) << words;
  EXPECT_EQ(valid.error().code, ErrorCode::kInvalidArgument);
  EXPECT_NE(valid.error().message.find(words), std::string::npos) << valid.error().message;
}

TEST(Validate, AcceptsTheDefaults) { EXPECT_TRUE(validate(LearnerOptions{})); }

TEST(Validate, NamesTheFieldThatIsOutOfRange) {
  expect_refused("learners.replicas is 0", [](auto& o) { o.replicas = 0; });
  expect_refused("learners.threads", [](auto& o) { o.threads = 0; });
  expect_refused("d4pg.discount is 1.5", [](auto& o) { o.d4pg.discount = 1.5; });
  expect_refused("d4pg.learning_rate is 0", [](auto& o) { o.d4pg.learning_rate = 0; });
  expect_refused("d4pg.atoms is 1", [](auto& o) { o.d4pg.atoms = 1; });
  expect_refused("d4pg.policy is 0", [](auto& o) { o.d4pg.policy = {256, 0}; });
  expect_refused("d4pg.step is 'fastest'", [](auto& o) { o.d4pg.step = "fastest"; });
  expect_refused("d4pg.v_max",
                 [](auto& o) { o.d4pg.v_max = std::numeric_limits<double>::infinity(); });
}

TEST(Validate, RefusesASupportThatIsEmpty) {
  expect_refused("d4pg.v_min (5) must be below d4pg.v_max (5)",
                 [](auto& o) { o.d4pg.v_min = o.d4pg.v_max = 5; });
  expect_refused("d4pg.v_min", [](auto& o) { o.d4pg.v_min = 200; });
}

TEST(Validate, RefusesABatchThatReplicasCannotShareEvenly) {
  expect_refused("d4pg.batch (256) cannot be divided evenly over learners.replicas (3)",
                 [](auto& o) { o.replicas = 3; });
}

TEST(Validate, RefusesDevicesThatAreNotThere) {
  expect_refused("'cuda:0'", [](auto& o) { o.devices = {"cpu", "cuda:0"}; });
  expect_refused("no device", [](auto& o) { o.devices.clear(); });
}

TEST(Validate, RefusesNetworksWithoutLayers) {
  expect_refused("d4pg.policy", [](auto& o) { o.d4pg.policy.clear(); });
  expect_refused("d4pg.critic", [](auto& o) { o.d4pg.critic.clear(); });
}

TEST(ValidateD4pgSpec, WantsContinuousActionsAndNumbers) {
  EnvSpec spec{
      .name = "e", .observations = {{"o", DType::kF64, {3}}}, .action = {.low = {-1}, .high = {1}}};
  EXPECT_TRUE(validate_d4pg_spec(spec));
  EnvSpec discrete = spec, blind = spec;
  discrete.action = {.discrete = true, .choices = 3, .low = {}, .high = {}};
  blind.observations = {{"pixels", DType::kU8, {8, 8, 3}}};
  EXPECT_FALSE(validate_d4pg_spec(discrete));
  EXPECT_FALSE(validate_d4pg_spec(blind));
}

}  // namespace
}  // namespace troupe::learners
