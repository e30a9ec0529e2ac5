// Encoding of parameter sets: round trip and refusal of damaged bytes.
#include "models/inference/parameter_set.hpp"

#include <gtest/gtest.h>

#include "tests/inference/policies.hpp"

namespace troupe::models {
namespace {

ParameterSet example() {
  ParameterSet set = random_policy(
      {.name = "policy", .inputs = 3, .hidden = {4, 5}, .outputs = 2, .tanh_output = true}, 1);
  set.learner_epoch = 7;
  set.version = 123456789012345ULL;
  set.arrays["normaliser.mean"] = {{3}, {1, 2, 3}};
  return set;
}

void expect_equal(const ParameterSet& a, const ParameterSet& b) {
  EXPECT_EQ(a.learner_epoch, b.learner_epoch);
  EXPECT_EQ(a.version, b.version);
  ASSERT_EQ(a.policy.size(), b.policy.size());
  for (std::size_t i = 0; i < a.policy.size(); ++i) {
    EXPECT_EQ(a.policy[i].kind, b.policy[i].kind);
    EXPECT_EQ(a.policy[i].inputs, b.policy[i].inputs);
    EXPECT_EQ(a.policy[i].outputs, b.policy[i].outputs);
    EXPECT_EQ(a.policy[i].epsilon, b.policy[i].epsilon);
    EXPECT_EQ(a.policy[i].name, b.policy[i].name);
  }
  ASSERT_EQ(a.arrays.size(), b.arrays.size());
  for (const auto& [name, array] : a.arrays) {
    ASSERT_TRUE(b.arrays.contains(name)) << name;
    EXPECT_EQ(b.arrays.at(name).shape, array.shape);
    EXPECT_EQ(b.arrays.at(name).values, array.values);
  }
}

TEST(ParameterSet, SurvivesTheWireBitForBit) {
  const Result<ParameterSet> decoded = decode_parameter_set(encode(example()));
  ASSERT_TRUE(decoded) << decoded.error().message;
  expect_equal(*decoded, example());
}

TEST(ParameterSet, RefusesEveryTruncation) {
  const std::vector<std::uint8_t> bytes = encode(example());
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const auto decoded = decode_parameter_set(std::span(bytes).first(size));
    ASSERT_FALSE(decoded) << size;
    EXPECT_EQ(decoded.error().code, ErrorCode::kCorrupt);
  }
}

TEST(ParameterSet, RefusesEveryFlippedBit) {
  const std::vector<std::uint8_t> bytes = encode(example());
  for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    std::vector<std::uint8_t> damaged = bytes;
    damaged[bit / 8] ^= static_cast<std::uint8_t>(1U << (bit % 8));
    EXPECT_FALSE(decode_parameter_set(damaged)) << bit;
  }
}

TEST(ParameterSet, OfTheNewerEpochWinsOverAnyVersion) {
  ParameterSet old, restarted;
  old.learner_epoch = 1;
  old.version = 1000;
  restarted.learner_epoch = 2;
  restarted.version = 10;
  EXPECT_TRUE(restarted.newer_than(old));
  EXPECT_FALSE(old.newer_than(restarted));
  EXPECT_FALSE(old.newer_than(old));
}

}  // namespace
}  // namespace troupe::models
