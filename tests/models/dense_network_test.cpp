// LibTorch's forward pass over flat parameters, its gradients in the flat buffer, and the agreement
// of the torch-free policy with it.
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include "models/flat_parameters.hpp"
#include "models/inference/dense_policy.hpp"
#include "models/initialise.hpp"
#include "models/torch_precompiled.hpp"
#include "tests/inference/policies.hpp"

namespace troupe::models {
namespace {

FlatParameters flat_of(const ParameterSet& set) {
  FlatParameters flat(flat_layout(set.policy), true);
  for (const Segment& segment : flat.layout().segments)
    std::ranges::copy(set.arrays.at(segment.name).values,
                      flat.values().mutable_data_ptr<float>() + segment.offset);
  return flat;
}

TEST(FlatParameters, AreAlignedAndInOrder) {
  const FlatParameters flat(
      flat_layout(dense_layers({.name = "n", .inputs = 3, .hidden = {5, 7}, .outputs = 2})), true);
  std::int64_t end = 0;
  for (const Segment& segment : flat.layout().segments) {
    EXPECT_EQ(segment.offset % 16, 0);
    EXPECT_GE(segment.offset, end);
    end = segment.offset + segment.elements;
  }
  EXPECT_LE(end, flat.layout().size);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(flat.values().const_data_ptr()) % 64, 0U);
  EXPECT_EQ(flat.layout().segments.front().shape, (std::vector<std::int64_t>{5, 3}));
}

TEST(FlatParameters, GatherGradientsInTheirBufferAndLeaveThePaddingZero) {
  const std::vector<DenseLayer> layers =
      dense_layers({.name = "n", .inputs = 3, .hidden = {5}, .outputs = 1});
  const FlatParameters flat(flat_layout(layers), true);
  Random random(1);
  const std::vector<float> values = initial_values(layers, flat.layout(), {}, random);
  std::ranges::copy(values, flat.values().mutable_data_ptr<float>());
  torch::autograd::backward({forward(layers, flat.parameters(), at::ones({4, 3})).sum()}, {});
  const at::Tensor& gradient = flat.gradient();
  std::int64_t end = 0;
  for (const Segment& segment : flat.layout().segments) {
    EXPECT_EQ(gradient.slice(0, end, segment.offset).abs().sum().item<float>(), 0);
    end = segment.offset + segment.elements;
  }
  // The output's bias has the gradient of a sum over four rows.
  EXPECT_EQ(gradient[flat.layout().segments.back().offset].item<float>(), 4);
}

TEST(DensePolicy, AgreesWithLibTorch) {
  for (const auto& [inputs, outputs] : {std::pair{17, 6}, {5, 1}, {67, 21}}) {
    for (const bool layer_norm : {true, false}) {
      const ParameterSet set = random_policy({.name = "policy",
                                              .inputs = inputs,
                                              .hidden = {256, 256, 256},
                                              .outputs = outputs,
                                              .layer_norm = layer_norm,
                                              .tanh_output = true},
                                             3);
      std::vector<float> observations = random_observations(32 * inputs, 4);
      std::vector<float> actions(static_cast<std::size_t>(32 * outputs));
      Result<DensePolicy> policy = DensePolicy::make(set);
      ASSERT_TRUE(policy);
      policy->act(observations, actions);

      const c10::NoGradGuard no_grad;
      const at::Tensor expected =
          forward(set.policy, flat_of(set).constants(),
                  at::from_blob(observations.data(), {32, inputs}, at::kFloat));
      const at::Tensor actual = at::from_blob(actions.data(), {32, outputs}, at::kFloat);
      EXPECT_LE((actual - expected).abs().max().item<float>(), 1e-5F);
      EXPECT_GE(expected.abs().max().item<float>(), 1e-2F);
    }
  }
}

}  // namespace
}  // namespace troupe::models
