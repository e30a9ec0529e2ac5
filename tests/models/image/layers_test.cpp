// What each layer must keep: spectral norms, batch statistics over replicas, graphs that live on.
#include "models/image/layers.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "models/torch_precompiled.hpp"

namespace troupe::models {
namespace {

at::Tensor random_tensor(at::IntArrayRef shape, std::uint64_t seed) {
  Random random(seed);
  const at::Tensor values = at::empty(shape, at::kDouble);
  for (std::int64_t i = 0; i < values.numel(); ++i)
    values.mutable_data_ptr<double>()[i] = random.normal();
  return values;
}

double largest_singular_value(const at::Tensor& weight) {
  return std::get<1>(at::linalg_svd(weight.detach().reshape({weight.size(0), -1})))[0]
      .item<double>();
}

struct OneLinear {
  ArrayList list;
  Linear layer{list,
               "l",
               {.inputs = 6,
                .outputs = 4,
                .bias = false,
                .spectral = true,
                .fill = glorot_uniform(6, 4, 1, 1)}};
  Random random{7};
  ImageArrays arrays{list, random, at::kCPU, at::kDouble};
};

TEST(SpectralNorm, TheWeightThatActsHasNormOne) {
  OneLinear one;
  const Pass pass{one.arrays.parameters().parameters(), one.arrays.buffers(), true, true};
  at::Tensor out;
  for (int i = 0; i < 200; ++i) out = one.layer(pass, at::eye(6, at::kDouble));
  EXPECT_NEAR(largest_singular_value(out), 1, 1e-9);
}

TEST(SpectralNorm, AFreshModelIsNearlyNormalisedAndEvaluationMovesNothing) {
  OneLinear one;
  const std::vector<at::Tensor> before{one.arrays.buffers()[0].clone(),
                                       one.arrays.buffers()[1].clone()};
  const Pass evaluation{one.arrays.parameters().parameters(), one.arrays.buffers()};
  EXPECT_NEAR(largest_singular_value(one.layer(evaluation, at::eye(6, at::kDouble))), 1, 0.05);
  for (std::size_t i = 0; i < 2; ++i) EXPECT_TRUE(at::equal(one.arrays.buffers()[i], before[i]));
  const Pass training{one.arrays.parameters().parameters(), one.arrays.buffers(), true, true};
  one.layer(training, at::eye(6, at::kDouble));
  EXPECT_FALSE(at::equal(one.arrays.buffers()[0], before[0]));
}

// D(real) + D(fake) in one graph: the second pass must not spoil what the first one saved.
TEST(SpectralNorm, TwoPassesOfOneGraphGoBackward) {
  OneLinear one;
  const Pass pass{one.arrays.parameters().parameters(), one.arrays.buffers(), true, true};
  const at::Tensor a = random_tensor({3, 6}, 1), b = random_tensor({3, 6}, 2);
  const at::Tensor first = one.layer(pass, a).square().sum();
  const at::Tensor second = one.layer(pass, b).square().sum();
  (first + second).backward();
  const at::Tensor& weight = one.arrays.parameters().parameters()[0];
  EXPECT_TRUE(at::isfinite(weight.grad()).all().item<bool>());
}

// sigma scales with W, so f(W / sigma) has no derivative in the direction of W once u and v have
// converged (Miyato et al., equation 9).
TEST(SpectralNorm, TheGradientKnowsAboutSigma) {
  OneLinear one;
  const Pass pass{one.arrays.parameters().parameters(), one.arrays.buffers(), true, true};
  for (int i = 0; i < 300; ++i) one.layer(pass, at::eye(6, at::kDouble));
  one.layer(pass, random_tensor({5, 6}, 3)).pow(3).sum().backward();
  const at::Tensor& weight = one.arrays.parameters().parameters()[0];
  EXPECT_NEAR(at::sum(weight.grad() * weight.detach()).item<double>(), 0, 1e-9);
  EXPECT_GT(weight.grad().norm().item<double>(), 0.01);
}

// Channels that vector instructions do not like go another way; in double the library's own way is
// sure.
TEST(Convolution, OfOnePixelIsItselfForAnyNumberOfChannels) {
  for (const std::int64_t inputs : {1, 3, 8, 12})
    for (const std::int64_t outputs : {1, 4, 8, 9})
      for (const std::int64_t stride : {1, 2}) {
        ArrayList list;
        const Convolution layer(list, "c",
                                {.inputs = inputs,
                                 .outputs = outputs,
                                 .kernel = 1,
                                 .stride = stride,
                                 .bias = true,
                                 .fill = kaiming_normal(outputs, 1)});
        Random random(3);
        ImageArrays arrays(list, random, at::kCPU, at::kDouble);
        const auto& parameters = arrays.parameters().parameters();
        const at::Tensor x = random_tensor({2, inputs, 5, 5}, 1).set_requires_grad(true);
        const at::Tensor out = layer({parameters, arrays.buffers()}, x);
        const at::Tensor expected = at::conv2d(x, parameters[0], parameters[1], stride);
        ASSERT_EQ(out.sizes(), expected.sizes());
        EXPECT_TRUE(at::allclose(out, expected, 1e-12, 1e-12));
        const std::vector<at::Tensor> inputs_of = {x, parameters[0], parameters[1]};
        const auto ours = torch::autograd::grad({out.square().sum()}, inputs_of, {}, true);
        const auto theirs = torch::autograd::grad({expected.square().sum()}, inputs_of);
        for (std::size_t i = 0; i < ours.size(); ++i)
          EXPECT_TRUE(at::allclose(ours[i], theirs[i], 1e-10, 1e-12)) << i;
      }
}

struct OneNorm {
  explicit OneNorm(std::int64_t classes = 0) : layer(list, "n", 3, 1, classes) {}
  ArrayList list;
  BatchNorm layer;
  Random random{7};
  ImageArrays arrays{list, random, at::kCPU, at::kDouble};
};

TEST(BatchNorm, RunningStatisticsMoveInTrainingOnlyAndServeEvaluation) {
  OneNorm one;
  const at::Tensor x = random_tensor({4, 3, 5, 5}, 1) * 2 + 1;
  const Pass evaluation{one.arrays.parameters().parameters(), one.arrays.buffers()};
  const at::Tensor unmoved = one.layer(evaluation, x);
  EXPECT_TRUE(at::allclose(unmoved, x / std::sqrt(1 + BatchNorm::kEpsilon)));
  const Pass training{one.arrays.parameters().parameters(), one.arrays.buffers(), true};
  const at::Tensor out = one.layer(training, x);
  EXPECT_TRUE(at::allclose(out.mean({0, 2, 3}), at::zeros({3}, at::kDouble), 0, 1e-9));
  EXPECT_TRUE(at::allclose(one.arrays.buffers()[0], x.mean({0, 2, 3}) * 0.1));
  EXPECT_TRUE(
      at::allclose(one.arrays.buffers()[1], 0.9 + 0.1 * x.transpose(0, 1).reshape({3, -1}).var(1)));
}

TEST(BatchNorm, ScaleAndShiftAreThoseOfTheClass) {
  OneNorm one(2);
  const at::Tensor x = random_tensor({4, 3, 2, 2}, 1);
  one.arrays.parameters().constants()[0].copy_(random_tensor({2, 3}, 2));
  one.arrays.parameters().constants()[1].copy_(random_tensor({2, 3}, 3));
  const at::Tensor labels = at::tensor({1, 0, 0, 1}, at::kLong);
  const Pass pass{one.arrays.parameters().parameters(), one.arrays.buffers()};
  const at::Tensor out = one.layer(pass, x, labels);
  for (std::int64_t i = 0; i < 4; ++i) {
    const std::int64_t label = labels[i].item<std::int64_t>();
    const at::Tensor expected = x[i] / std::sqrt(1 + BatchNorm::kEpsilon) *
                                    one.arrays.parameters().constants()[0][label].view({3, 1, 1}) +
                                one.arrays.parameters().constants()[1][label].view({3, 1, 1});
    EXPECT_TRUE(at::allclose(out[i], expected)) << i;
  }
}

// Two replicas that add their moments, here one after the other: the first pass collects the
// shares, the second uses their sum. One has more rows than the other. Values, running statistics
// and gradients equal one replica's with both parts.
TEST(BatchNorm, StatisticsOverReplicasAreThoseOfTheWholeBatch) {
  const at::Tensor whole = random_tensor({6, 3, 4, 4}, 1) + 2;
  const at::Tensor weight = random_tensor({6, 3, 4, 4}, 2);
  OneNorm reference;
  const Pass alone{reference.arrays.parameters().parameters(), reference.arrays.buffers(), true};
  const at::Tensor x = whole.clone().set_requires_grad(true);
  const at::Tensor expected = reference.layer(alone, x);
  (expected * weight).sum().backward();

  OneNorm shared;
  const std::vector<std::int64_t> first{0, 2}, rows{2, 4};
  std::vector<at::Tensor> parts, shares;
  for (std::size_t r = 0; r < 2; ++r)
    parts.push_back(whole.narrow(0, first[r], rows[r]).clone().set_requires_grad(true));
  for (std::size_t r = 0; r < 2; ++r) {
    std::vector<at::Tensor> buffers = shared.arrays.buffers();
    shared.layer({shared.arrays.parameters().parameters(), buffers, true, false,
                  [&](const at::Tensor& share) { return shares.emplace_back(share); }, 6},
                 parts[r]);
  }
  const at::Tensor total = shares[0] + shares[1];
  at::Tensor loss = at::zeros({}, at::kDouble);
  std::vector<at::Tensor> buffers;
  for (std::size_t r = 0; r < 2; ++r) {
    buffers = shared.arrays.buffers();
    const at::Tensor out = shared.layer({shared.arrays.parameters().parameters(), buffers, true,
                                         false, [&](const at::Tensor&) { return total; }, 6},
                                        parts[r]);
    EXPECT_TRUE(at::allclose(out, expected.narrow(0, first[r], rows[r]), 1e-9, 1e-9)) << r;
    loss = loss + (out * weight.narrow(0, first[r], rows[r])).sum();
  }
  loss.backward();
  for (std::size_t r = 0; r < 2; ++r)
    EXPECT_TRUE(at::allclose(parts[r].grad(), x.grad().narrow(0, first[r], rows[r]), 1e-8, 1e-9))
        << r;
  for (std::size_t i = 0; i < 2; ++i)
    EXPECT_TRUE(at::allclose(buffers[i], reference.arrays.buffers()[i], 1e-9, 1e-12)) << i;
  for (std::size_t i = 0; i < 2; ++i)
    EXPECT_TRUE(at::allclose(shared.arrays.parameters().parameters()[i].grad(),
                             reference.arrays.parameters().parameters()[i].grad(), 1e-9, 1e-9));
}

// A large mean with a small spread: in 16 bits the difference of moments would be below zero.
TEST(BatchNorm, StatisticsOverReplicasSurviveHalfPrecision) {
  OneNorm shared;
  const at::Tensor x = (random_tensor({6, 3, 4, 4}, 1) * 0.1 + 50).to(at::kBFloat16);
  const at::Tensor out =
      shared.layer({shared.arrays.parameters().parameters(), shared.arrays.buffers(), true, false,
                    [](const at::Tensor& share) { return share; }, 6},
                   x);
  EXPECT_TRUE(at::isfinite(out).all().item<bool>());
  EXPECT_TRUE(at::isfinite(shared.arrays.buffers()[1]).all().item<bool>());
}

TEST(ArrayList, EqualSeedsGiveEqualBitsAndPaddingStaysZero) {
  ArrayList list;
  const Linear linear(list, "a", {.inputs = 5, .outputs = 3, .fill = uniform_by_inputs(5)});
  const Convolution convolution(list, "b",
                                {.inputs = 3, .outputs = 2, .fill = kaiming_normal(2, 9)});
  EXPECT_EQ(list.parameter_count(), 15 + 3 + 54);
  Random first(4), second(4), third(5);
  const ImageArrays a(list, first), b(list, second), c(list, third);
  EXPECT_TRUE(at::equal(a.parameters().values(), b.parameters().values()));
  EXPECT_FALSE(at::equal(a.parameters().values(), c.parameters().values()));
  EXPECT_EQ(a.parameters().values()[15].item<float>(), 0);
  EXPECT_EQ(list.decays(), (std::vector<bool>{true, false, true}));
}

// A 3x3 or 1x1 kernel with means of 2 x 2 after it or copies before it, by one kernel and by two
// operations in turn: values, and gradients of input, weight and bias.
TEST(Convolution, ResamplingWithinTheKernelIsResamplingBesideIt) {
  for (const std::int64_t kernel : {1, 3})
    for (const Resample resample : {Resample::kHalve, Resample::kDouble}) {
      ArrayList list;
      const Convolution layer(list, "c",
                              {.inputs = 3,
                               .outputs = 5,
                               .kernel = kernel,
                               .bias = true,
                               .resample = resample,
                               .fill = glorot_uniform(3, 5, kernel * kernel, 1)});
      Random random(11);
      ImageArrays arrays(list, random, at::kCPU, at::kDouble);
      const std::vector<at::Tensor>& parameters = arrays.parameters().parameters();
      arrays.parameters().constants()[1].copy_(random_tensor({5}, 5));  // a bias that is not 0
      const Pass pass{parameters, arrays.buffers()};
      const at::Tensor x = random_tensor({2, 3, 6, 8}, 3).requires_grad_();
      const auto in_turn = [&] {
        const at::Tensor wide =
            resample == Resample::kDouble ? x.repeat_interleave(2, 2).repeat_interleave(2, 3) : x;
        const at::Tensor out = at::conv2d(wide, parameters[0], parameters[1], 1, kernel / 2);
        return resample == Resample::kHalve ? at::avg_pool2d(out, 2) : out;
      };
      const at::Tensor out = layer(pass, x), expected = in_turn();
      ASSERT_EQ(out.sizes(), expected.sizes());
      const at::Tensor slope = random_tensor(out.sizes(), 4);
      const auto close = [](const at::Tensor& a, const at::Tensor& b) {
        return (a - b).norm().item<double>() <= 1e-12 * b.norm().item<double>();
      };
      EXPECT_TRUE(close(out, expected)) << "kernel " << kernel;
      const torch::autograd::variable_list inputs = {x, parameters[0], parameters[1]};
      const auto found = torch::autograd::grad({out}, inputs, {slope});
      const auto wanted = torch::autograd::grad({expected}, inputs, {slope});
      for (std::size_t i = 0; i < inputs.size(); ++i)
        EXPECT_TRUE(close(found[i], wanted[i])) << "kernel " << kernel << ", gradient " << i;
    }
}

}  // namespace
}  // namespace troupe::models
