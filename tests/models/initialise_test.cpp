// First values: their ranges, and that they follow from the generator alone.
#include "models/initialise.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace troupe::models {
namespace {

TEST(Initialisation, DrawsWeightsByTheOutputsAndTheLastLayerNearZero) {
  const std::vector<DenseLayer> layers = dense_layers(
      {.name = "p", .inputs = 17, .hidden = {200, 100}, .outputs = 6, .tanh_output = true});
  const FlatLayout layout = flat_layout(layers);
  Random random(5);
  const std::vector<float> values = initial_values(layers, layout, {.output_scale = 1e-4}, random);
  const auto largest = [&](std::size_t segment) {
    const Segment& s = layout.segments[segment];
    float result = 0;
    for (std::int64_t i = 0; i < s.elements; ++i)
      result = std::max(result, std::abs(values[static_cast<std::size_t>(s.offset + i)]));
    return static_cast<double>(result);
  };
  const auto expect_limit = [&](std::size_t segment, double limit) {
    EXPECT_LE(largest(segment), limit * 1.000001);
    EXPECT_GE(largest(segment), limit * 0.98);
  };
  expect_limit(0, std::sqrt(0.999 / 200));
  EXPECT_EQ(largest(1), 0);
  EXPECT_EQ(largest(2), 1);  // LayerNorm
  EXPECT_EQ(largest(3), 0);
  expect_limit(4, std::sqrt(0.999 / 100));
  expect_limit(6, std::sqrt(3e-4 / 100));
  EXPECT_EQ(largest(7), 0);
}

TEST(Initialisation, FollowsFromTheGenerator) {
  const std::vector<DenseLayer> layers =
      dense_layers({.name = "p", .inputs = 3, .hidden = {4}, .outputs = 2});
  Random one(1), same(1), other(2);
  const auto draw = [&](Random& random) {
    return initial_values(layers, flat_layout(layers), {}, random);
  };
  const std::vector<float> first = draw(one);
  EXPECT_EQ(draw(same), first);
  EXPECT_NE(draw(other), first);
  EXPECT_NE(draw(one), first);
}

}  // namespace
}  // namespace troupe::models
