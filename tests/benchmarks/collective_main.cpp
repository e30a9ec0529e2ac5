// How fast the collectives are: in a process beside the memory itself, between processes beside
// Gloo. Prints one JSON object. Sides take turns within a round, and what is reported is the median
// of the rounds' ratios.
//
// Bound in a process: an all-reduce in place must read and write every byte of every rank once. So
// the bound is the time in which the same threads, all at once, scale their own buffers of the same
// size in place, which reads and writes every byte once and computes next to nothing.
#include <ATen/Parallel.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstdio>
#include <functional>
#include <nlohmann/json.hpp>
#include <thread>

#include "learners/collectives/exchanged.hpp"
#include "learners/collectives/gloo.hpp"
#include "learners/collectives/in_process.hpp"
#include "learners/replicas/local_processes.hpp"
#include "learners/replicas/processes.hpp"
#include "models/torch_precompiled.hpp"

namespace troupe::learners {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kRanks = 2;
constexpr int kRounds = 15;

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Median seconds of work(), after one call that does not count.
double time(int repeats, const std::function<void()>& work) {
  std::vector<double> seconds;
  for (int i = -1; i < repeats; ++i) {
    const auto start = std::chrono::steady_clock::now();
    work();
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
    if (i >= 0) seconds.push_back(spent.count());
  }
  return median(std::move(seconds));
}

int repeats_for(std::int64_t bytes) {
  return static_cast<int>(std::clamp<std::int64_t>((64 << 20) / bytes, 3, 200));
}

void scale(at::Tensor& tensor) {
  float* values = tensor.mutable_data_ptr<float>();
  const std::int64_t count = tensor.numel();
  for (std::int64_t i = 0; i < count; ++i) values[i] *= 0.999999F;
}

Json in_process(std::int64_t bytes) {
  std::vector<double> bound, all_reduce, ratio;
  const int repeats = repeats_for(bytes);
  auto group = make_in_process_group(kRanks);
  std::barrier meet(kRanks);
  const auto rank_work = [&](int rank) {
    at::set_num_threads(1);
    at::Tensor values = at::ones({bytes / 4});
    const std::vector<at::Tensor> tensors = {values};
    for (int round = 0; round < kRounds; ++round) {
      const double own = time(repeats, [&] {
        meet.arrive_and_wait();
        scale(values);
        meet.arrive_and_wait();
      });
      const double together = time(repeats, [&] {
        meet.arrive_and_wait();
        if (!group[static_cast<std::size_t>(rank)]->all_reduce(tensors, ReduceOp::kMean, "bench"))
          std::abort();
        meet.arrive_and_wait();
      });
      if (rank != 0) continue;
      bound.push_back(own);
      all_reduce.push_back(together);
      ratio.push_back(own / together);
    }
  };
  {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < kRanks; ++rank) threads.emplace_back(rank_work, rank);
  }
  return {{"bytes", bytes},
          {"bound_ms", median(bound) * 1e3},
          {"all_reduce_ms", median(all_reduce) * 1e3},
          {"over_bound", median(ratio)}};
}

std::unique_ptr<Exchange> exchange_over(const std::string& transport, const Processes& processes) {
  ReplicationOptions options;
  options.transport = transport;
  auto exchange = connect(processes, options, transport, processes.index, processes.count);
  if (!exchange) throw std::runtime_error(exchange.error().message);
  return *std::move(exchange);
}

// Times of both transports by turns, on this rank: Gloo's bare all-reduce beside our whole call,
// with the agreement on what is called.
Json between_processes(const Processes& processes) {
  at::set_num_threads(1);
  const auto gloo = exchange_over("gloo", processes);
  const auto shared = make_exchanged_collective(exchange_over("shared_memory", processes));
  Json results = Json::array();
  for (const std::int64_t bytes :
       {std::int64_t{4} << 10, std::int64_t{1} << 20, std::int64_t{4} << 20}) {
    const std::vector<at::Tensor> tensors = {at::zeros({bytes / 4})};
    const Elements elements{tensors[0].mutable_data_ptr(), bytes / 4, ElementType::kF32};
    std::vector<double> by_gloo, by_memory, ratio;
    for (int round = 0; round < kRounds; ++round) {
      by_gloo.push_back(time(repeats_for(bytes), [&] {
        if (!gloo->reduce(elements, ReduceOp::kSum)) std::abort();
      }));
      by_memory.push_back(time(repeats_for(bytes), [&] {
        if (!shared->all_reduce(tensors, ReduceOp::kSum, "bench")) std::abort();
      }));
      ratio.push_back(by_gloo.back() / by_memory.back());
    }
    results.push_back({{"bytes", bytes},
                       {"gloo_us", median(by_gloo) * 1e6},
                       {"shared_memory_us", median(by_memory) * 1e6},
                       {"gloo_over_shared_memory", median(ratio)}});
  }
  return results;
}

int run() {
  // First the processes: a fork has to have one thread.
  const auto table = std::make_shared<RendezvousTable>();
  const auto ended = run_local_processes(
      kRanks,
      [](int index, std::shared_ptr<RequestLink> link) {
        const Json results =
            between_processes({.index = index, .count = kRanks, .rendezvous = link});
        if (index != 0) return 0;
        const std::string text = results.dump();
        RendezvousClient client(link, "", std::chrono::seconds(10));
        return client.set("results", {text.begin(), text.end()}) ? 0 : 1;
      },
      {.answer = [&](std::span<const std::uint8_t> request) { return table->handle(request); }});
  for (const LocalProcess& process : ended)
    if (!process.clean()) return std::fprintf(stderr, "a process failed\n"), 1;
  RendezvousClient client(make_local_link(table), "", std::chrono::seconds(1));
  const auto text = client.get("results", std::chrono::seconds(1));
  if (!text) return std::fprintf(stderr, "%s\n", text.error().message.c_str()), 1;
  const Json processes = Json::parse(text->begin(), text->end());

  Json threads = Json::array();
  double over_bound = 1e9;
  for (const std::int64_t bytes : {std::int64_t{4} << 20, std::int64_t{100} << 20}) {
    threads.push_back(in_process(bytes));
    over_bound = std::min(over_bound, threads.back()["over_bound"].get<double>());
  }
  const Json report = {{"name", "collective"},
                       {"ranks", kRanks},
                       {"rounds", kRounds},
                       {"in_process", threads},
                       {"between_processes", processes},
                       {"ratios",
                        {{"in_process_over_bound", over_bound},
                         {"gloo_1mb", processes[1]["gloo_over_shared_memory"]}}},
                       {"latency_4kb_us", processes[0]["shared_memory_us"]}};
  std::printf("%s\n", report.dump().c_str());
  return 0;
}

}  // namespace
}  // namespace troupe::learners

int main() { return troupe::learners::run(); }
