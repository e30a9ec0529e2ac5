// The primitives that a step function has, and what misuse of them is.
#include "learners/replicas/context.hpp"

#include <gtest/gtest.h>
#include <torch/optim/adam.h>
#include <torch/optim/sgd.h>

#include "learners/replicas/fused_adam.hpp"
#include "learners/replicas/replicator.hpp"
#include "models/torch_precompiled.hpp"

namespace troupe::learners {
namespace {

at::Tensor row(std::initializer_list<double> values) {
  return at::tensor(std::vector<double>(values), at::kDouble);
}

// Runs `step` once on so many replicas in threads.
Result<std::vector<Tensors>> once(int replicas,
                                  const std::function<Tensors(ReplicaContext&)>& step) {
  const ReplicationOptions options{.replicas = replicas};
  const auto replicator = Replicator::make(options, {}, [&](ReplicaContext& context) {
    return StepFunctions{{"train", [&](const Tensors&) { return step(context); }}};
  });
  if (!replicator) return tl::unexpected(replicator.error());
  return (*replicator)->step();
}

std::string error_of(const Result<std::vector<Tensors>>& result) {
  EXPECT_FALSE(result);
  return result ? "" : result.error().message;
}

TEST(ReplicaContext, ComputesTheWorkedExample) {
  const auto results = once(2, [](ReplicaContext& context) {
    EXPECT_EQ(context.replicas(), 2);
    EXPECT_EQ(context.replicas_in_sync(), 2);
    EXPECT_EQ(context.id(), context.id_in_sync());
    const Tensors own = context.id() == 0 ? Tensors{at::scalar_tensor(1.0), row({40, 1})}
                                          : Tensors{at::scalar_tensor(3.0), row({2, 98})};
    const Tensors sum = context.all_reduce(own, ReduceOp::kSum);
    const Tensors low = context.all_reduce(own, ReduceOp::kMin);
    const Tensors high = context.all_reduce(own, ReduceOp::kMax);
    const Tensors all = context.all_gather(own);
    const Tensors second = context.broadcast(own, 1);
    EXPECT_EQ(own[0].item<double>(), context.id() == 0 ? 1 : 3);  // arguments stay
    return Tensors{sum[0],  sum[1], low[0], low[1],    high[0],
                   high[1], all[0], all[1], second[0], second[1]};
  });
  ASSERT_TRUE(results) << results.error().message;
  for (const Tensors& got : *results) {
    EXPECT_EQ(got[0].item<double>(), 4);
    EXPECT_TRUE(got[1].equal(row({42, 99})));
    EXPECT_EQ(got[2].item<double>(), 1);
    EXPECT_TRUE(got[3].equal(row({2, 1})));
    EXPECT_EQ(got[4].item<double>(), 3);
    EXPECT_TRUE(got[5].equal(row({40, 98})));
    EXPECT_TRUE(got[6].equal(at::tensor({1.0F, 3.0F})));
    EXPECT_TRUE(got[7].equal(at::stack({row({40, 1}), row({2, 98})})));
    EXPECT_EQ(got[8].item<double>(), 3);
    EXPECT_TRUE(got[9].equal(row({2, 98})));
  }
}

TEST(ReplicaContext, DifferentiatesSumsAndMeans) {
  // L_r = w_r * sum_s x_s with w = (2, 5): dL/dx = 2 + 5 on both, as every L is part of the whole.
  const auto results = once(2, [](ReplicaContext& context) {
    at::Tensor x = at::ones({3}, at::kDouble).requires_grad_(true);
    const at::Tensor sum = context.all_reduce(x, ReduceOp::kSum);
    torch::autograd::backward({sum.sum() * (context.id() == 0 ? 2 : 5)}, {});
    at::Tensor y = at::ones({}, at::kDouble).requires_grad_(true);
    torch::autograd::backward({context.all_reduce(y, ReduceOp::kMean) * 3}, {});
    return Tensors{sum.detach(), x.grad(), y.grad()};
  });
  ASSERT_TRUE(results) << results.error().message;
  for (const Tensors& got : *results) {
    EXPECT_TRUE(got[0].equal(row({2, 2, 2})));
    EXPECT_TRUE(got[1].equal(row({7, 7, 7})));
    EXPECT_EQ(got[2].item<double>(), 3);
  }
}

TEST(ReplicaContext, NormalisesOverTheGlobalBatch) {
  // Global batch norm: the all-sum of [mean / R, mean of squares / R]; variance = E[x^2] - E[x]^2.
  const at::Tensor all = at::sin(at::arange(16, at::kDouble)).reshape({8, 2});
  const auto results = once(4, [&](ReplicaContext& context) {
    const at::Tensor x = all.narrow(0, context.id() * 2, 2);
    const at::Tensor moments =
        context.all_reduce(at::stack({x.mean(0), x.square().mean(0)}) / 4, ReduceOp::kSum);
    return Tensors{moments[0], moments[1] - moments[0].square()};
  });
  ASSERT_TRUE(results);
  EXPECT_TRUE((*results)[3][0].allclose(all.mean(0), 1e-12, 1e-12));
  EXPECT_TRUE((*results)[3][1].allclose(all.var(0, false), 1e-12, 1e-12));
}

TEST(ReplicaContext, NamesTheLinesOfCallsThatDoNotMatch) {
  const std::string order = error_of(once(2, [](ReplicaContext& context) {
    if (context.id() == 0) return Tensors{context.all_reduce(row({1}), ReduceOp::kSum)};
    return Tensors{context.broadcast(row({1}), 0)};
  }));
  EXPECT_NE(order.find("all_reduce 'context_test.cpp:"), std::string::npos) << order;
  EXPECT_NE(order.find("broadcast 'context_test.cpp:"), std::string::npos) << order;
  const std::string shapes = error_of(once(3, [](ReplicaContext& context) {
    return Tensors{context.all_reduce(at::zeros({context.id() + 1}), ReduceOp::kSum)};
  }));
  EXPECT_NE(shapes.find("in step 1"), std::string::npos) << shapes;
  EXPECT_NE(shapes.find("Float [2]"), std::string::npos) << shapes;
}

TEST(ReplicaContext, NamesTheLineWhenAReplicaThrowsOrReturnsEarly) {
  const std::string thrown = error_of(once(3, [](ReplicaContext& context) {
    if (context.id() == 1) throw std::runtime_error("the file data/7.png is corrupt");
    return Tensors{context.all_reduce(row({1}), ReduceOp::kSum)};
  }));
  EXPECT_EQ(thrown, "Replica 1 failed: the file data/7.png is corrupt");
  const std::string early = error_of(once(3, [](ReplicaContext& context) {
    if (context.id() == 1) return Tensors{};
    return Tensors{context.all_reduce(row({1}), ReduceOp::kSum)};
  }));
  EXPECT_NE(early.find("Replica 1 ended its step before all_reduce 'context_test.cpp:"),
            std::string::npos)
      << early;
}

TEST(ReplicaContext, GivesAllReplicasTheValuesOfTheFirst) {
  const auto results = once(3, [](ReplicaContext& context) {
    const at::Tensor weight = at::full({5}, context.id() + 1.0).requires_grad_(true);
    const auto wrapped = context.wrap_optimizer(
        {weight}, optimizer<torch::optim::SGD>(torch::optim::SGDOptions(0.1)));
    return Tensors{weight.detach()};
  });
  ASSERT_TRUE(results) << results.error().message;
  for (const Tensors& got : *results) EXPECT_TRUE(got[0].equal(at::ones({5})));
}

TEST(ReplicaContext, RefusesParametersThatCannotBeOptimized) {
  const OptimizerFactory sgd = optimizer<torch::optim::SGD>(torch::optim::SGDOptions(0.1));
  const at::Tensor weight = at::zeros({2}).requires_grad_(true);
  const auto twice = error_of(once(1, [&](ReplicaContext& context) {
    const auto one = context.wrap_optimizer({weight}, sgd);
    const auto two = context.wrap_optimizer({weight}, sgd);
    return Tensors{};
  }));
  EXPECT_NE(twice.find("another wrapped optimizer"), std::string::npos) << twice;
  const auto constant = error_of(once(1, [&](ReplicaContext& context) {
    const auto one = context.wrap_optimizer({at::zeros({2})}, sgd);
    return Tensors{};
  }));
  EXPECT_NE(constant.find("leaf"), std::string::npos) << constant;
}

TEST(ReplicaContext, KnowsItsLogicalDevices) {
  const ReplicationOptions options{.logical_devices = {"cpu", "cpu"}};
  const auto replicator = Replicator::make(options, {}, [&](ReplicaContext& context) {
    EXPECT_EQ(context.logical_devices(), 2);
    EXPECT_TRUE(context.logical_device(1).is_cpu());
    EXPECT_THROW(context.logical_device(2), std::out_of_range);
    return StepFunctions{};
  });
  ASSERT_TRUE(replicator) << replicator.error().message;
  const auto missing = (*replicator)->step("train");
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.error().message.find("'train'"), std::string::npos);
}

TEST(WrappedOptimizer, CountsAParameterWithoutGradientAsZero) {
  const auto results = once(2, [](ReplicaContext& context) {
    const at::Tensor used = at::zeros({1}).requires_grad_(true);
    const at::Tensor unused = at::ones({1}).requires_grad_(true);
    const auto sgd = context.wrap_optimizer(
        {used, unused}, optimizer<torch::optim::SGD>(torch::optim::SGDOptions(1.0)));
    for (int i = 0; i < 2; ++i) {
      sgd->zero_grad();
      torch::autograd::backward({(used * (context.id() + 1)).sum()}, {});
      if (i == 1) used.mutable_grad() = used.grad().clone();  // not the buffer's any more
      sgd->step();
    }
    return Tensors{used.detach(), unused.detach()};
  });
  ASSERT_TRUE(results) << results.error().message;
  for (const Tensors& got : *results) {
    EXPECT_EQ(got[0].item<double>(), -3);  // twice the mean of 1 and 2
    EXPECT_EQ(got[1].item<double>(), 1);
  }
}

TEST(FusedAdamOptimizer, StepsAsTorchsAdam) {
  const auto train = [](const OptimizerFactory& factory) {
    return once(2, [&](ReplicaContext& context) {
      const at::Tensor weight = at::linspace(-1, 1, 37).requires_grad_(true);
      const auto adam = context.wrap_optimizer({weight}, factory);
      for (int i = 0; i < 50; ++i) {
        adam->zero_grad();
        torch::autograd::backward({(weight * (context.id() + i % 3)).sin().sum()}, {});
        adam->step();
      }
      return Tensors{weight.detach()};
    });
  };
  const auto own = train(fused_adam({.learning_rate = 1e-2}));
  const auto torchs = train(optimizer<torch::optim::Adam>(torch::optim::AdamOptions(1e-2)));
  ASSERT_TRUE(own) << own.error().message;
  ASSERT_TRUE(torchs) << torchs.error().message;
  EXPECT_TRUE((*own)[0][0].allclose((*torchs)[0][0], 1e-4, 1e-5));
  EXPECT_FALSE((*own)[0][0].allclose(at::linspace(-1, 1, 37), 1e-2, 1e-2));
}

}  // namespace
}  // namespace troupe::learners
