// What more replicas gain, beside the speed-up lemma of Zou et al. (arXiv:1709.06622): with T_C the
// compute time of a step on one replica, T_O what more replicas do not shorten, R = T_O / T_C,
//   speed-up(G) = G (1 + R) / (1 + G R).
// Prints one JSON object.
//
// stub:    replicas that wait T_C / G and a fixed overhead as if they computed, so that more of
//          them than cores can be measured; R is taken from the step of one.
// d4pg:    the reference learner, one thread a replica, as two replicas of a process and as two
//          processes. `more`: each has a batch of 256, and two processes that run the step's matrix
//          products, each on the fastest library, show what the machine allows. `same`: a global
//          batch of 256; R is taken from one replica's steps on 256 and on 128 items.
// resnet, sngan: likewise beside convolutions; scaling_pictures.hpp.
// overlap: a network of four layers under autograd, gradients averaged at the end of the backward
//          pass, or in buckets during it.
// All of it in children that take turns, so that no round has a neighbour; medians of the rounds.
#include <ATen/Parallel.h>
#include <torch/optim/sgd.h>

#include <cmath>
#include <cstdio>

#include "learners/benchmark.hpp"
#include "learners/benchmark_roof.hpp"
#include "learners/learner.hpp"
#include "learners/replicas/replicator.hpp"
#include "models/torch_precompiled.hpp"
#include "tests/benchmarks/scaling_children.hpp"
#include "tests/benchmarks/scaling_pictures.hpp"

namespace troupe::learners {
namespace {

constexpr double kCompute = 80, kOverhead = 8;  // ms of the stub
constexpr std::size_t kRounds = 9;

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

double replicated(const ReplicaFunction& model, const ReplicationOptions& options,
                  const Processes& processes, int steps) {
  at::set_num_threads(1);
  const auto replicator = Replicator::make(options, processes, model);
  if (!replicator) throw std::runtime_error(replicator.error().message);
  return median_time(steps, [&] { check((*replicator)->step()); });
}

// The reference learner; `index` of `processes` that train together, `items` for each replica.
double d4pg(int index, int processes, const std::shared_ptr<RequestLink>& link,
            std::int64_t replicas, std::int64_t items) {
  LearnerOptions options;
  options.replicas = replicas;
  options.d4pg.batch = items * replicas * processes;
  const auto learner = make_learner("d4pg", options, benchmark_context());
  check(learner);
  if (processes > 1)
    check((*learner)->join({.rank = index, .size = processes, .rendezvous = link}));
  const replay::Batch batch = benchmark_batch(**learner);
  return median_time(60, [&] { check((*learner)->update(batch)); });
}

// The reference step's products, one after the other.
double products() {
  at::set_num_threads(1);
  double seconds = 0;
  for (const Product& product : reference_products())
    seconds += product.count * time_product(product, 9).seconds;
  return seconds * 1000;
}

Json of_d4pg() {
  Times times;
  for (std::size_t round = 0; round < kRounds; ++round) {
    const auto take = [&](const std::string& name, int processes, const Work& work) {
      times[name].push_back(in_children(processes, work));
    };
    const auto learner = [](int processes, std::int64_t replicas, std::int64_t items) {
      return [=](int index, const std::shared_ptr<RequestLink>& link) {
        return d4pg(index, processes, link, replicas, items);
      };
    };
    const auto list = [](int, const std::shared_ptr<RequestLink>&) { return products(); };
    take("products", 1, list);
    take("products twice", 2, list);
    for (const std::int64_t items : {128, 256}) {
      const std::string each = " of " + std::to_string(items);
      take("one" + each, 1, learner(1, 1, items));
      take("threads" + each, 1, learner(1, 2, items));
      take("processes" + each, 2, learner(2, 1, items));
    }
  }
  const auto share = [&](const std::string& two) {
    return share_of(times, "one of 256", two, "products", "products twice");
  };
  const double whole = middle(times["one of 256"]), half = middle(times["one of 128"]);
  const double compute = 2 * (whole - half);
  return {{"one_ms", whole},
          {"two_threads_over_gemm_processes", share("threads of 256")},
          {"two_processes_over_gemm_processes", share("processes of 256")},
          {"more",
           {{"two_gemm_processes", gain(times, "products", "products twice", 2)},
            {"two_threads", gain(times, "one of 256", "threads of 256", 2)},
            {"two_processes", gain(times, "one of 256", "processes of 256", 2)}}},
          {"same",
           {{"lemma", lemma(2, (whole - compute) / compute)},
            {"two_threads", gain(times, "one of 256", "threads of 128", 1)},
            {"two_processes", gain(times, "one of 256", "processes of 128", 1)}}}};
}

Json of_overlap() {
  Times times;
  for (std::size_t round = 0; round < kRounds; ++round)
    for (const std::int64_t bucket : {std::int64_t{0}, std::int64_t{128} << 10}) {
      const std::string name = bucket == 0 ? " at the end" : " in buckets";
      const auto step = [=](int processes, std::int64_t replicas) {
        return [=](int index, const std::shared_ptr<RequestLink>& link) {
          return replicated(network(), {.replicas = replicas, .bucket_bytes = bucket},
                            {.index = index, .count = processes, .rendezvous = link}, 200);
        };
      };
      times["one" + name].push_back(in_children(1, step(1, 1)));
      times["threads" + name].push_back(in_children(1, step(1, 2)));
      times["processes" + name].push_back(in_children(2, step(2, 1)));
    }
  Json all;
  for (const std::string name : {" at the end", " in buckets"})
    for (const std::string how : {"threads", "processes"})
      all["two " + how + name] = gain(times, "one at the end", how + name, 1);
  return all;
}

Json of_stubs(double& worst) {
  Json steps = Json::array();
  double one = 0;
  for (const int replicas : {1, 2, 3, 4, 6, 8}) {
    const double time = in_children(1, [=](int, const std::shared_ptr<RequestLink>&) {
      return replicated(stub(), {.replicas = replicas}, {}, 15);
    });
    if (replicas == 1) one = time;
    const double predicted = lemma(replicas, (one - kCompute) / kCompute);
    worst = std::max(worst, std::abs(one / time / predicted - 1));
    steps.push_back({{"replicas", replicas},
                     {"step_ms", time},
                     {"speed_up", one / time},
                     {"lemma", predicted}});
  }
  return steps;
}

int run() {
  double worst = 0;
  const Json stubs = of_stubs(worst), learners = of_d4pg(), overlap = of_overlap(),
             resnet = scaling_of_pictures("resnet"), sngan = scaling_of_pictures("sngan");
  const Json report = {
      {"name", "scaling"},
      {"rounds", kRounds},
      {"stub", stubs},
      {"d4pg", learners},
      {"overlap", overlap},
      {"resnet", resnet},
      {"sngan", sngan},
      {"ratios",
       {{"stub_worst_error", worst},
        {"two_threads_over_gemm_processes", learners["two_threads_over_gemm_processes"]},
        {"two_processes_over_gemm_processes", learners["two_processes_over_gemm_processes"]},
        {"resnet_two_threads_over_convolutions", resnet["two_threads_over_convolutions"]},
        {"resnet_two_processes_over_convolutions", resnet["two_processes_over_convolutions"]},
        {"sngan_two_threads_over_convolutions", sngan["two_threads_over_convolutions"]},
        {"sngan_two_processes_over_convolutions", sngan["two_processes_over_convolutions"]}}}};
  std::printf("%s\n", report.dump().c_str());
  return 0;
}

}  // namespace
}  // namespace troupe::learners

int main() { return troupe::learners::run(); }
