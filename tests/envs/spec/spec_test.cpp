// Sizes and the hash by which two nodes recognise the same task.
#include "envs/spec/spec.hpp"

#include <gtest/gtest.h>

namespace troupe {
namespace {

EnvSpec example() {
  EnvSpec spec;
  spec.name = "example";
  spec.observations = {{.name = "position", .shape = {3, 2}},
                       {.name = "height", .shape = {}},
                       {.name = "camera", .dtype = DType::kU8, .shape = {8, 8}}};
  spec.action.low = {-1, -1};
  spec.action.high = {1, 1};
  spec.episode_steps = 10;
  return spec;
}

TEST(EnvSpec, CountsElementsWithoutPixels) {
  EXPECT_EQ(example().observation_size(), 7);
  EXPECT_EQ(example().observations[0].bytes(), 24U);
  EXPECT_EQ(example().observations[2].bytes(), 64U);
  EXPECT_EQ(example().action.elements(), 2);
}

TEST(EnvSpec, HashesEqualSpecsEqually) { EXPECT_EQ(hash_of(example()), hash_of(example())); }

TEST(EnvSpec, HashesEachDifferenceDifferently) {
  const auto changed = [](auto change) {
    EnvSpec spec = example();
    change(spec);
    return hash_of(spec);
  };
  const std::uint64_t same = hash_of(example());
  EXPECT_NE(same, changed([](EnvSpec& s) { s.name = "other"; }));
  EXPECT_NE(same, changed([](EnvSpec& s) { s.observations[0].name = "speed"; }));
  EXPECT_NE(same, changed([](EnvSpec& s) { s.observations[0].dtype = DType::kF64; }));
  EXPECT_NE(same, changed([](EnvSpec& s) { s.observations[0].shape = {2, 3}; }));
  EXPECT_NE(same, changed([](EnvSpec& s) { s.action.high[1] = 2; }));
  EXPECT_NE(same, changed([](EnvSpec& s) { s.episode_steps = 11; }));
  EXPECT_NE(same, changed([](EnvSpec& s) { s.action.discrete = true; }));
}

}  // namespace
}  // namespace troupe
