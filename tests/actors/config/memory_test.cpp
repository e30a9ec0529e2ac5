// The memory bound against sums by hand.
#include "actors/config/memory.hpp"

#include <gtest/gtest.h>

namespace troupe::actors {
namespace {

EnvSpec small_spec() {
  EnvSpec spec;
  spec.name = "test";
  spec.observations = {{"position", DType::kF32, {2}}, {"velocity", DType::kF32, {}}};
  spec.action.low = {-1};
  spec.action.high = {1};
  return spec;
}

TEST(MemoryTest, CountsParametersOfBothNetworks) {
  learners::D4pgOptions options;
  options.policy = {4, 5};
  options.critic = {6};
  options.atoms = 11;
  options.layer_norm = false;
  const std::int64_t policy = (3 * 4 + 4) + (4 * 5 + 5) + (5 * 1 + 1);
  const std::int64_t critic = (4 * 6 + 6) + (6 * 11 + 11);
  EXPECT_EQ(parameter_count(options, small_spec()), policy + critic);
  options.layer_norm = true;  // scale and offset after each network's first layer
  EXPECT_EQ(parameter_count(options, small_spec()), policy + 2 * 4 + critic + 2 * 6);
}

TEST(MemoryTest, AddsUpTheFourTerms) {
  RunOptions options;  // 2 actors, credit 2, segments of 12 steps, prefetch 4, batch 256
  options.replay.capacity = 1000;
  const auto terms = memory_terms(options, small_spec());
  ASSERT_EQ(terms.size(), 4u);
  const double step = 4 * (3 + 1 + 1);
  EXPECT_DOUBLE_EQ(terms[0].bytes, 2 * 2 * 13 * step);
  EXPECT_DOUBLE_EQ(terms[1].bytes, 1000 * (step + 17 + 112.0 / 12));
  EXPECT_EQ(terms[1].formula, "1000 items x (20 + 17 + 112 / 12) B");
  EXPECT_DOUBLE_EQ(terms[2].bytes, 4 * 256 * (4 * (3 + 3 + 1) + 12 + 8 + 16));
  EXPECT_DOUBLE_EQ(terms[3].bytes, 8.0 * static_cast<double>(parameter_count(
                                             options.learners.learner.d4pg, small_spec())));
  EXPECT_EQ(terms[0].formula, "2 actors x 2 credit x (12 + 1) steps x 20 B");
}

TEST(MemoryTest, ParameterServersHoldWhatTheyServeAndWhatIsUnderWay) {
  RunOptions options;
  options.learners.count = 4;
  options.learners.sync = "groups";
  options.learners.sync_groups = 2;
  const auto terms = memory_terms(options, small_spec());
  ASSERT_EQ(terms.size(), 5u);
  EXPECT_TRUE(terms[2].formula.starts_with("2 groups x 4 prefetch x 256 items"));
  EXPECT_DOUBLE_EQ(
      terms[4].bytes,
      10 * 4.0 * static_cast<double>(parameter_count(options.learners.learner.d4pg, small_spec())));
}

TEST(MemoryTest, StepsOnDiskTakeNoMemory) {
  RunOptions options;
  options.replay.capacity = 1200;
  options.replay.disk = {"/var/tmp", 1 << 20};
  EXPECT_DOUBLE_EQ(memory_terms(options, small_spec())[1].bytes, 1200 * 17 + 100 * 112);
}

TEST(MemoryTest, ANullJobHasNoParameters) {
  RunOptions options;
  options.job = "null";
  EXPECT_DOUBLE_EQ(memory_terms(options, small_spec())[3].bytes, 0);
}

}  // namespace
}  // namespace troupe::actors
