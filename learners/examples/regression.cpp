// A tutorial: linear regression, written for one replica, run on any number of them.
//
//   regression                                     one replica
//   regression --replicas 4                        four, in threads
//   regression --processes 2 --replicas 2          two processes of two
//   regression --replicas 4 --sync-groups 2        two groups, asynchronous to each other
//   regression --replicas 4 --parameter-servers 2  four asynchronous replicas and two servers
//   regression --replicas 2 --logical-devices 2    each replica on two logical devices
//
// What a user writes is train(); main() reads the options and starts processes, which in a run of
// the platform its nodes do. Prints the weights that it found; they are the same everywhere.
#include <torch/optim/sgd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "learners/replicas/local_processes.hpp"
#include "learners/replicas/replicator.hpp"
#include "models/torch_precompiled.hpp"

using namespace troupe;            // NOLINT
using namespace troupe::learners;  // NOLINT

namespace {

// y = 2 x0 - 3 x1 + 1, without noise. Each pipeline draws its own rows.
Pipeline points(const InputContext& context) {
  auto generator = at::make_generator<at::CPUGeneratorImpl>(1 + context.pipeline);
  return [=]() -> Result<Tensors> {
    const at::Tensor x = at::randn({context.rows, 2}, generator);
    return Tensors{x, 2 * x.select(1, 0) - 3 * x.select(1, 1) + 1};
  };
}

// One replica: its model, its optimizer, and what it does in a step.
StepFunctions linear_model(ReplicaContext& context) {
  // The model's second part lies on the last logical device, which with one is the first.
  const at::Device last = context.logical_device(context.logical_devices() - 1);
  const at::TensorOptions first(context.logical_device(0)), second(last);
  const at::Tensor weight = at::zeros({2}, first).requires_grad_(true);
  const at::Tensor bias = at::zeros({}, second).requires_grad_(true);
  const std::shared_ptr<ReplicaOptimizer> sgd = context.wrap_optimizer(
      {weight, bias}, optimizer<torch::optim::SGD>(torch::optim::SGDOptions(0.1)));
  return {{"train", [=, &context](const Tensors& inputs) {
             sgd->zero_grad();
             const at::Tensor error =
                 at::mv(inputs[0], weight).to(last) + bias - inputs[1].to(last);
             const at::Tensor loss = error.square().mean();
             loss.backward();
             sgd->step();
             return Tensors{context.all_reduce(loss.detach(), ReduceOp::kMean), weight, bias};
           }}};
}

int train(const ReplicationOptions& options, const Processes& processes) {
  const auto replicator = Replicator::make(options, processes, linear_model, points);
  if (!replicator) return std::fprintf(stderr, "%s\n", replicator.error().message.c_str()), 1;
  for (int step = 1; step <= 200; ++step) {
    const auto reports = (*replicator)->step();
    if (!reports) return std::fprintf(stderr, "%s\n", reports.error().message.c_str()), 1;
    if (step % 50 != 0 || processes.index != 0) continue;
    const Tensors& report = (*reports)[0];
    std::printf("step %d: loss %.2e, weights %.4f %.4f, bias %.4f\n", step,
                report[0].item<double>(), report[1][0].item<double>(), report[1][1].item<double>(),
                report[2].item<double>());
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  ReplicationOptions options{.batch = 64};
  int processes = 1;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i], value = argv[i + 1];
    const int number = std::atoi(value.c_str());
    if (name == "--processes") {
      processes = number;
    } else if (name == "--replicas") {
      options.replicas = number;
    } else if (name == "--transport") {
      options.transport = value;
    } else if (name == "--inputs") {
      options.inputs = value;
    } else if (name == "--sync-groups") {
      options.sync_groups = number;
    } else if (name == "--parameter-servers") {
      options.parameter_servers = number;
    } else if (name == "--logical-devices") {
      options.logical_devices.assign(static_cast<std::size_t>(number), "cpu");
    } else {
      return std::fprintf(stderr, "There is no option %s.\n", name.c_str()), 2;
    }
  }
  if (processes == 1) return train(options, {});
  const auto ended = run_local_processes(processes, [&](int index, auto rendezvous) {
    return train(options, {.index = index, .count = processes, .rendezvous = rendezvous});
  });
  for (const LocalProcess& process : ended)
    if (!process.clean()) return 1;
  return 0;
}
