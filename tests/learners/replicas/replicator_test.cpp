// The same user code on one replica and on many, in threads and processes: equal results, inputs
// that reach who they are for, several step functions, and failures that reach everyone.
#include "learners/replicas/replicator.hpp"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/optim/adam.h>
#include <torch/optim/sgd.h>
#include <unistd.h>

#include "learners/replicas/fused_adam.hpp"
#include "learners/replicas/local_processes.hpp"
#include "models/torch_precompiled.hpp"

namespace troupe::learners {
namespace {

constexpr std::int64_t kBatch = 24;

// Rows of the global batch of each step, the same whoever asks for which.
InputFunction rows_of(at::ScalarType type) {
  return [type](const InputContext& context) -> Pipeline {
    return [=, step = 0]() mutable -> Result<Tensors> {
      const at::Tensor all =
          at::sin(at::arange(kBatch * 4, at::kDouble) * 0.7 + step++).reshape({kBatch, 4});
      const at::Tensor own = all.narrow(0, context.pipeline * context.rows, context.rows).to(type);
      return Tensors{own, own.square().sum(1)};
    };
  };
}

// A network of one hidden layer.
ReplicaFunction network(at::ScalarType type, const OptimizerFactory& factory) {
  return [=](ReplicaContext& context) -> StepFunctions {
    const at::TensorOptions options = at::TensorOptions(context.logical_device(0)).dtype(type);
    const auto fill = [&](std::vector<std::int64_t> shape, double phase) {
      std::int64_t count = 1;
      for (const std::int64_t extent : shape) count *= extent;
      return (at::cos(at::arange(count, options) + phase) * 0.5)
          .reshape(shape)
          .requires_grad_(true);
    };
    const Tensors p = {fill({8, 4}, 1), fill({8}, 2), fill({1, 8}, 3), fill({1}, 4)};
    const std::shared_ptr<ReplicaOptimizer> wrapped = context.wrap_optimizer(p, factory);
    return {{"train",
             [=](const Tensors& inputs) {
               wrapped->zero_grad();
               const at::Tensor hidden = at::tanh(at::linear(inputs[0], p[0], p[1]));
               const at::Tensor error = at::linear(hidden, p[2], p[3]).squeeze(1) - inputs[1];
               torch::autograd::backward({error.square().mean()}, {});
               wrapped->step();
               return Tensors{};
             }},
            {"read", [=](const Tensors&) {
               Tensors flat;
               for (const at::Tensor& tensor : p) flat.push_back(tensor.detach().flatten());
               return Tensors{at::cat(flat)};
             }}};
  };
}

// The parameters of every local replica after so many steps.
Result<std::vector<at::Tensor>> trained(const ReplicationOptions& options,
                                        const Processes& processes, at::ScalarType type,
                                        const OptimizerFactory& factory, int steps) {
  auto replicator = Replicator::make(options, processes, network(type, factory), rows_of(type));
  if (!replicator) return tl::unexpected(replicator.error());
  for (int i = 0; i < steps; ++i)
    if (auto done = (*replicator)->step(); !done) return tl::unexpected(done.error());
  auto read = (*replicator)->step("read");
  if (!read) return tl::unexpected(read.error());
  std::vector<at::Tensor> values;
  for (const Tensors& report : *read) values.push_back(report[0]);
  return values;
}

ReplicationOptions replicas(int count, const std::string& inputs = "process") {
  return {.replicas = count, .batch = kBatch, .inputs = inputs};
}

double distance(const at::Tensor& a, const at::Tensor& b) {
  return ((a - b).norm() / a.norm()).item<double>();
}

TEST(Replicas, EqualOneReplicaWithTheSameGlobalBatch) {
  struct Case {
    at::ScalarType type;
    OptimizerFactory factory;
    double tolerance;
  };
  const std::vector<Case> cases = {
      {at::kDouble, optimizer<torch::optim::SGD>(torch::optim::SGDOptions(0.02).momentum(0.9)),
       1e-9},
      {at::kDouble, optimizer<torch::optim::Adam>(torch::optim::AdamOptions(0.01)), 1e-9},
      {at::kFloat, optimizer<torch::optim::SGD>(torch::optim::SGDOptions(0.02)), 1e-5},
      {at::kFloat, optimizer<torch::optim::Adam>(torch::optim::AdamOptions(0.003)), 1e-3},
      {at::kFloat, fused_adam({.learning_rate = 0.003}), 1e-3}};
  for (const Case& test : cases) {
    const auto one = trained(replicas(1), {}, test.type, test.factory, 100);
    ASSERT_TRUE(one) << one.error().message;
    const auto start = trained(replicas(1), {}, test.type, test.factory, 0);
    EXPECT_GT(distance((*start)[0], (*one)[0]), 0.05);
    for (const int count : {2, 4, 12}) {
      const auto many = trained(replicas(count), {}, test.type, test.factory, 100);
      ASSERT_TRUE(many) << many.error().message;
      for (const at::Tensor& values : *many) {
        EXPECT_LE(distance((*one)[0], values), test.tolerance) << count;
        EXPECT_TRUE(values.equal((*many)[0]));
      }
    }
  }
}

TEST(Replicas, RepeatTheirBitsAndStayEqualForAThousandSteps) {
  const OptimizerFactory adam = fused_adam({.learning_rate = 1e-3});
  const auto one = trained(replicas(3), {}, at::kFloat, adam, 1000);
  const auto again = trained(replicas(3), {}, at::kFloat, adam, 1000);
  ASSERT_TRUE(one) << one.error().message;
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_TRUE((*one)[i].equal((*one)[0]));
    EXPECT_TRUE((*one)[i].equal((*again)[i]));
  }
}

TEST(Replicas, TakeTheSameRowsFromAnyKindOfPipeline) {
  const OptimizerFactory sgd = optimizer<torch::optim::SGD>(torch::optim::SGDOptions(0.02));
  const auto one = trained(replicas(4, "process"), {}, at::kFloat, sgd, 20);
  for (const char* inputs : {"one", "replica"}) {
    const auto other = trained(replicas(4, inputs), {}, at::kFloat, sgd, 20);
    ASSERT_TRUE(other) << other.error().message;
    EXPECT_TRUE((*other)[0].equal((*one)[0])) << inputs;
  }
}

TEST(Replicas, AreRefusedABatchThatDoesNotDivide) {
  const auto refused = Replicator::make(replicas(5), {}, network(at::kFloat, fused_adam()));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
  // And a pipeline that gives another number of rows than was asked for.
  const auto replicator = Replicator::make(
      replicas(2), {}, network(at::kFloat, fused_adam()), [](const InputContext&) -> Pipeline {
        return []() -> Result<Tensors> { return Tensors{at::zeros({23, 4}), at::zeros({23})}; };
      });
  ASSERT_TRUE(replicator);
  const auto step = (*replicator)->step();
  ASSERT_FALSE(step);
  EXPECT_EQ(step.error().message, "Input pipeline 0 gave 23 rows in tensor 0, not 24.");
}

TEST(Replicas, TrainTwoModelsAgainstEachOtherWithTwoOptimizers) {
  // A bilinear game, one step function a player; Adam with the betas of the proposal's GAN.
  const auto play = [](int count) {
    const auto replicator =
        Replicator::make({.replicas = count}, {}, [](ReplicaContext& context) -> StepFunctions {
          const auto player = [&](double value) {
            return at::full({2}, value, at::kDouble).requires_grad_(true);
          };
          const at::Tensor x = player(1), y = player(-0.5);
          torch::optim::AdamOptions adam(0.01);
          adam.betas({0.5, 0.9});
          const std::shared_ptr<ReplicaOptimizer> first =
              context.wrap_optimizer({x}, optimizer<torch::optim::Adam>(adam));
          const std::shared_ptr<ReplicaOptimizer> second =
              context.wrap_optimizer({y}, optimizer<torch::optim::Adam>(adam));
          // Replica r sees the game tilted by its share, so that only the mean is level.
          const double tilt = context.id() - (context.replicas() - 1) / 2.0;
          const auto step = [=](const std::shared_ptr<ReplicaOptimizer>& own, double sign) {
            return [=](const Tensors&) {
              own->zero_grad();
              torch::autograd::backward({sign * ((x * y).sum() + tilt * (x.sum() + y.sum()))}, {});
              own->step();
              return Tensors{at::cat({x, y}).detach().clone()};
            };
          };
          return {{"minimise", step(first, 1)}, {"maximise", step(second, -1)}};
        });
    EXPECT_TRUE(replicator) << replicator.error().message;
    at::Tensor state;
    for (int i = 0; i < 60; ++i) {
      EXPECT_TRUE((*replicator)->step("minimise"));
      const auto report = (*replicator)->step("maximise");
      EXPECT_TRUE(report) << report.error().message;
      state = (*report)[0][0];
    }
    return state;
  };
  const at::Tensor one = play(1);
  EXPECT_LE(distance(one, play(2)), 1e-9);
  EXPECT_LE(distance(one, play(4)), 1e-9);
  EXPECT_GT(distance(one, at::tensor(std::vector<double>{1, 1, -0.5, -0.5})), 0.1);
}

class ReplicasInProcesses : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Transports, ReplicasInProcesses, testing::Values("gloo", "shared_memory"),
                         [](const auto& transport) { return transport.param; });

// Runs work(processes) in two processes, whose result is whether it was right.
void in_two_processes(const std::function<bool(const Processes&)>& work) {
  const auto ended = run_local_processes(2, [&](int index, std::shared_ptr<RequestLink> link) {
    ::alarm(280);  // a hang fails
    at::set_num_threads(1);
    return work({.index = index, .count = 2, .rendezvous = std::move(link)}) ? 0 : 1;
  });
  for (const LocalProcess& process : ended) EXPECT_TRUE(process.clean());
}

TEST_P(ReplicasInProcesses, EqualOneReplicaAndEachOtherAfterManySteps) {
  const OptimizerFactory sgd =
      optimizer<torch::optim::SGD>(torch::optim::SGDOptions(0.02).momentum(0.5));
  at::set_num_threads(1);
  for (const char* inputs : {"process", "one", "replica"}) {
    // Gloo's rounds take milliseconds on a busy machine.
    const int many = GetParam() == "gloo" ? 100 : 1000;
    const int steps = std::string(inputs) == "process" ? many : 10;
    const auto one = trained(replicas(1), {}, at::kDouble, sgd, steps);
    ASSERT_TRUE(one) << one.error().message;
    in_two_processes([&](const Processes& processes) {
      ReplicationOptions options = replicas(2, inputs);
      options.transport = GetParam();
      const auto own = trained(options, processes, at::kDouble, sgd, steps);
      if (!own) return std::fprintf(stderr, "%s\n", own.error().message.c_str()), false;
      // The other process's bits, by a file of this one's memory: a hash through the rendezvous.
      RendezvousClient client(processes.rendezvous, std::string("bits/") + inputs + "/",
                              std::chrono::seconds(60));
      const auto* bytes = static_cast<const std::uint8_t*>((*own)[0].const_data_ptr());
      const std::vector<std::uint8_t> mine(bytes, bytes + (*own)[0].nbytes());
      if (!client.set(std::to_string(processes.index), mine)) return false;
      const auto other = client.get(std::to_string(1 - processes.index), std::chrono::seconds(60));
      return other && *other == mine && (*own)[1].equal((*own)[0]) &&
             distance((*one)[0], (*own)[0]) <= 1e-9;
    });
  }
}

TEST_P(ReplicasInProcesses, HearOfAReplicaThatThrowsInAnother) {
  in_two_processes([&](const Processes& processes) {
    ReplicationOptions options = replicas(2);
    options.transport = GetParam();
    const auto replicator = Replicator::make(options, processes, [&](ReplicaContext& context) {
      return StepFunctions{{"train", [&](const Tensors&) {
                              if (context.id() == 3) throw std::runtime_error("no such file");
                              return Tensors{context.all_reduce(at::ones({2}), ReduceOp::kSum)};
                            }}};
    });
    if (!replicator) return std::fprintf(stderr, "%s\n", replicator.error().message.c_str()), false;
    const auto start = std::chrono::steady_clock::now();
    const auto step = (*replicator)->step();
    if (step) return false;
    const std::string& message = step.error().message;
    std::fprintf(stderr, "process %d: %s\n", processes.index, message.c_str());
    // The line is named where others waited for it, and the cause everywhere.
    return message.find("no such file") != std::string::npos &&
           (processes.index == 1 || message.find("replicator_test.cpp:") != std::string::npos) &&
           std::chrono::steady_clock::now() - start < std::chrono::seconds(60);
  });
}

}  // namespace
}  // namespace troupe::learners
