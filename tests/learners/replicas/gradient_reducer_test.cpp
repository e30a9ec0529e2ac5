// Buckets that travel during the backward pass, and gradients that travel short.
#include "learners/replicas/gradient_reducer.hpp"

#include <gtest/gtest.h>
#include <torch/optim/sgd.h>

#include <cmath>

#include "learners/replicas/replicator.hpp"
#include "models/torch_precompiled.hpp"

namespace troupe::learners {
namespace {

// A chain of layers on data that differs from replica to replica; reports all parameters.
ReplicaFunction chain(int passes, bool create_graph) {
  return [passes, create_graph](ReplicaContext& context) -> StepFunctions {
    Tensors layers;
    for (int i = 0; i < 6; ++i)
      layers.push_back((at::sin(at::arange(64.0) + i) * 0.4)
                           .reshape({8, 8})
                           .to(at::kFloat)
                           .requires_grad_(true));
    const std::shared_ptr<ReplicaOptimizer> wrapped = context.wrap_optimizer(
        layers, optimizer<torch::optim::SGD>(torch::optim::SGDOptions(0.05).momentum(0.9)));
    const at::Tensor x = at::cos(at::arange(32.0) + context.id()).reshape({4, 8}).to(at::kFloat);
    return {{"train", [=](const Tensors&) {
               wrapped->zero_grad();
               for (int pass = 0; pass < passes; ++pass) {
                 at::Tensor y = x;
                 for (const at::Tensor& layer : layers) y = at::tanh(at::mm(y, layer));
                 torch::autograd::backward({(y - 0.3).square().mean()}, {}, {}, create_graph);
               }
               wrapped->step();
               return Tensors{at::stack(layers).detach().clone()};
             }}};
  };
}

Result<at::Tensor> trained(const ReplicationOptions& options, int steps, int passes = 1,
                           bool create_graph = false) {
  const auto replicator = Replicator::make(options, {}, chain(passes, create_graph));
  if (!replicator) return tl::unexpected(replicator.error());
  at::Tensor values;
  for (int i = 0; i < steps; ++i) {
    const auto reports = (*replicator)->step();
    if (!reports) return tl::unexpected(reports.error());
    for (const Tensors& report : *reports) EXPECT_TRUE(report[0].equal((*reports)[0][0]));
    values = (*reports)[0][0];
  }
  return values;
}

TEST(GradientBuckets, GiveTheBitsOfOneCall) {
  const auto whole = trained({.replicas = 3}, 50);
  ASSERT_TRUE(whole) << whole.error().message;
  for (const std::int64_t bytes : {1, 300, 1000, 100000}) {
    const auto buckets = trained({.replicas = 3, .bucket_bytes = bytes}, 50);
    ASSERT_TRUE(buckets) << buckets.error().message;
    EXPECT_TRUE(buckets->equal(*whole)) << bytes;
  }
}

TEST(GradientBuckets, FindGradientsOfAPassThatBuildsAGraph) {
  // Such a pass accumulates into new tensors, not into the buffer that travels.
  const auto whole = trained({.replicas = 3}, 20);
  ASSERT_TRUE(whole) << whole.error().message;
  for (const std::int64_t bytes : {0, 1, 300, 100000}) {
    const auto graph = trained({.replicas = 3, .bucket_bytes = bytes}, 20, 1, true);
    ASSERT_TRUE(graph) << graph.error().message;
    EXPECT_TRUE(graph->equal(*whole)) << bytes;
  }
}

TEST(GradientBuckets, RefuseASecondBackwardPass) {
  EXPECT_TRUE(trained({.replicas = 2}, 3, 2));
  const auto late = trained({.replicas = 2, .bucket_bytes = 300}, 3, 2);
  ASSERT_FALSE(late);
  EXPECT_NE(late.error().message.find("second backward pass"), std::string::npos)
      << late.error().message;
}

TEST(GradientBuckets, LeaveGradientsOfAnotherOptimizerAlone) {
  // The loss of the second step reaches both models; only its own optimizer's gradients count.
  const auto play = [](std::int64_t bytes) {
    const auto replicator = Replicator::make(
        {.replicas = 2, .bucket_bytes = bytes}, {}, [](ReplicaContext& context) -> StepFunctions {
          const at::Tensor a = at::full({4}, 1.0).requires_grad_(true);
          const at::Tensor b = at::full({4}, 2.0).requires_grad_(true);
          const OptimizerFactory sgd = optimizer<torch::optim::SGD>(torch::optim::SGDOptions(0.1));
          const std::shared_ptr<ReplicaOptimizer> first = context.wrap_optimizer({a}, sgd);
          const std::shared_ptr<ReplicaOptimizer> second = context.wrap_optimizer({b}, sgd);
          const auto step = [=, id = context.id()](const std::shared_ptr<ReplicaOptimizer>& own) {
            return [=](const Tensors&) {
              own->zero_grad();
              torch::autograd::backward({(a * b).sum() * (id + 1)}, {});
              own->step();
              return Tensors{at::cat({a, b}).detach().clone()};
            };
          };
          return {{"a", step(first)}, {"b", step(second)}};
        });
    EXPECT_TRUE(replicator) << replicator.error().message;
    at::Tensor values;
    for (int i = 0; i < 10; ++i) {
      EXPECT_TRUE((*replicator)->step("a"));
      const auto report = (*replicator)->step("b");
      EXPECT_TRUE(report) << report.error().message;
      values = (*report)[1][0];
    }
    return values;
  };
  EXPECT_TRUE(play(0).equal(play(1)));
}

TEST(ShortGradients, ConvergeAsLongOnesDo) {
  const auto start = trained({.replicas = 2}, 1);
  const auto exact = trained({.replicas = 2}, 400);
  ASSERT_TRUE(exact);
  const double moved = (*exact - *start).norm().item<double>();
  for (const char* type : {"f16", "bf16"})
    for (const std::int64_t bytes : {0, 300}) {
      const auto rounded = trained({.replicas = 2, .bucket_bytes = bytes, .gradients = type}, 400);
      ASSERT_TRUE(rounded) << rounded.error().message;
      EXPECT_FALSE(rounded->equal(*exact));
      EXPECT_LT((*rounded - *exact).norm().item<double>(), 0.05 * moved) << type;
    }
}

TEST(ShortGradients, CarryWhatRoundingTookAway) {
  // A gradient of 1 + 2^-10 is 1 as a bf16; the rest adds up and arrives in time. Without error
  // feedback the sum over 1024 steps would be 1024 instead of 1025.
  const auto replicator = Replicator::make(
      {.replicas = 2, .gradients = "bf16"}, {}, [](ReplicaContext& context) -> StepFunctions {
        const at::Tensor w = at::zeros({1}).requires_grad_(true);
        const std::shared_ptr<ReplicaOptimizer> sgd =
            context.wrap_optimizer({w}, optimizer<torch::optim::SGD>(torch::optim::SGDOptions(1)));
        return {{"train", [=](const Tensors&) {
                   sgd->zero_grad();
                   torch::autograd::backward({(w * (1 + 0x1p-10)).sum()}, {});
                   sgd->step();
                   return Tensors{w.detach().clone()};
                 }}};
      });
  ASSERT_TRUE(replicator) << replicator.error().message;
  double value = 0;
  for (int i = 0; i < 1024; ++i) value = (*(*replicator)->step())[0][0].item<double>();
  EXPECT_NEAR(value, -1025, 0.01);
}

}  // namespace
}  // namespace troupe::learners
