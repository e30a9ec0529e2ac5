// What more replicas gain, beside the speed-up lemma of Zou et al. (arXiv:1709.06622): with T_C the
// compute time of a step on one replica, T_O what more replicas do not shorten, R = T_O / T_C,
//   speed-up(G) = G (1 + R) / (1 + G R).
// Prints one JSON object.
//
// stub: replicas that wait T_C / G and a fixed overhead as if they computed, so that more replicas
//       than cores can be measured; R is taken from the step of one.
// real: a network on a global batch of 256, one replica, two threads, two processes; R is what the
//       lemma makes of the measured speed-up.
#include <ATen/Parallel.h>
#include <torch/optim/sgd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <thread>

#include "learners/replicas/local_processes.hpp"
#include "learners/replicas/replicator.hpp"
#include "models/torch_precompiled.hpp"

namespace troupe::learners {
namespace {

using Json = nlohmann::ordered_json;
using Milliseconds = std::chrono::duration<double, std::milli>;

constexpr double kCompute = 80, kOverhead = 8;  // ms of the stub

double lemma(double replicas, double overhead) {
  return replicas * (1 + overhead) / (1 + replicas * overhead);
}

// Median milliseconds of a step, after three that do not count.
double step_time(Replicator& replicator, int steps) {
  std::vector<double> times;
  for (int i = -3; i < steps; ++i) {
    const auto start = std::chrono::steady_clock::now();
    if (const auto done = replicator.step(); !done) throw std::runtime_error(done.error().message);
    const Milliseconds spent = std::chrono::steady_clock::now() - start;
    if (i >= 0) times.push_back(spent.count());
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

ReplicaFunction stub() {
  return [](ReplicaContext& context) -> StepFunctions {
    return {{"train", [&context, gradient = at::zeros({64 << 10})](const Tensors&) {
               std::this_thread::sleep_for(Milliseconds(kCompute / context.replicas()));
               const at::Tensor mean = context.all_reduce(gradient, ReduceOp::kMean);
               std::this_thread::sleep_for(Milliseconds(kOverhead));
               return Tensors{};
             }}};
  };
}

ReplicaFunction network() {
  return [](ReplicaContext& context) -> StepFunctions {
    Tensors layers;
    for (const auto& [rows, columns] : {std::pair{17, 256}, {256, 256}, {256, 256}, {256, 1}})
      layers.push_back((at::randn({rows, columns}) * 0.05).requires_grad_(true));
    const std::shared_ptr<ReplicaOptimizer> sgd = context.wrap_optimizer(
        layers, optimizer<torch::optim::SGD>(torch::optim::SGDOptions(0.01)));
    const at::Tensor x = at::randn({256 / context.replicas(), 17});
    return {{"train", [=](const Tensors&) {
               sgd->zero_grad();
               at::Tensor y = x;
               for (const at::Tensor& layer : layers) y = at::tanh(at::mm(y, layer));
               torch::autograd::backward({y.square().mean()}, {});
               sgd->step();
               return Tensors{};
             }}};
  };
}

double measured(const ReplicaFunction& model, int replicas, const Processes& processes, int steps) {
  at::set_num_threads(1);
  const auto replicator = Replicator::make({.replicas = replicas}, processes, model);
  if (!replicator) throw std::runtime_error(replicator.error().message);
  return step_time(**replicator, steps);
}

double in_two_processes() {
  const auto table = std::make_shared<RendezvousTable>();
  const auto ended = run_local_processes(
      2,
      [](int index, std::shared_ptr<RequestLink> link) {
        const std::string time = std::to_string(
            measured(network(), 1, {.index = index, .count = 2, .rendezvous = link}, 200));
        RendezvousClient client(link, "", std::chrono::seconds(10));
        return client.set("time" + std::to_string(index), {time.begin(), time.end()}) ? 0 : 1;
      },
      {.answer = [&](std::span<const std::uint8_t> request) { return table->handle(request); }});
  for (const LocalProcess& process : ended)
    if (!process.clean()) throw std::runtime_error("a process failed");
  RendezvousClient client(make_local_link(table), "", std::chrono::seconds(1));
  const auto time = client.get("time0", std::chrono::seconds(1));
  if (!time) throw std::runtime_error(time.error().message);
  return std::stod(std::string(time->begin(), time->end()));
}

Json real() {
  const double processes = in_two_processes();  // first: a fork has to have one thread
  const double one = measured(network(), 1, {}, 200), threads = measured(network(), 2, {}, 200);
  const auto gain = [&](double time) {
    const double efficiency = one / time / 2;
    return Json{{"step_ms", time},
                {"speed_up", one / time},
                {"overhead_over_compute", (1 - efficiency) / (2 * efficiency - 1)}};
  };
  return {
      {"one_replica_ms", one}, {"two_threads", gain(threads)}, {"two_processes", gain(processes)}};
}

int run() {
  const Json of_network = real();
  Json steps = Json::array();
  double one = 0, worst = 0;
  for (const int replicas : {1, 2, 3, 4, 6, 8}) {
    const double time = measured(stub(), replicas, {}, 15);
    if (replicas == 1) one = time;
    const double predicted = lemma(replicas, (one - kCompute) / kCompute);
    worst = std::max(worst, std::abs(one / time / predicted - 1));
    steps.push_back({{"replicas", replicas},
                     {"step_ms", time},
                     {"speed_up", one / time},
                     {"lemma", predicted}});
  }
  const Json report = {{"name", "scaling"},
                       {"stub", steps},
                       {"real", of_network},
                       {"ratios",
                        {{"stub_worst_error", worst},
                         {"two_threads", of_network["two_threads"]["speed_up"]},
                         {"two_processes", of_network["two_processes"]["speed_up"]}}}};
  std::printf("%s\n", report.dump().c_str());
  return 0;
}

}  // namespace
}  // namespace troupe::learners

int main() { return troupe::learners::run(); }
