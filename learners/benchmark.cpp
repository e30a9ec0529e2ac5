#include "learners/benchmark.hpp"

#include <ATen/Parallel.h>

#include <algorithm>
#include <chrono>
#include <cstdarg>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <thread>

#include "envs/spec/random.hpp"
#include "learners/benchmark_roof.hpp"
#include "learners/learner.hpp"

namespace troupe::learners {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t kObservation = 17, kAction = 6;

// A learner with its batch, updated again and again.
class Subject {
 public:
  static Result<std::unique_ptr<Subject>> make(int threads) {
    LearnerOptions options;
    options.threads = threads;
    Result<std::unique_ptr<Learner>> learner = make_learner("d4pg", options, benchmark_context());
    if (!learner) return tl::unexpected(learner.error());
    return std::unique_ptr<Subject>(new Subject(*std::move(learner)));
  }

  // Median seconds of `updates` updates, after two that warm caches and wake threads.
  Result<double> time(int updates) {
    std::vector<double> seconds;
    for (int i = -2; i < updates; ++i) {
      const auto start = std::chrono::steady_clock::now();
      if (Result<UpdateReport> report = learner_->update(batch_); !report)
        return tl::unexpected(report.error());
      const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
      if (i >= 0) seconds.push_back(spent.count());
    }
    return median(std::move(seconds));
  }

 private:
  explicit Subject(std::unique_ptr<Learner> learner)
      : learner_(std::move(learner)), batch_(benchmark_batch(*learner_)) {}
  std::unique_ptr<Learner> learner_;
  replay::Batch batch_;
};

// Rounds of one thread count.
struct Series {
  int threads = 0;
  std::vector<ProductTime> products;      // fastest round of each
  std::vector<double> updates{}, roof{};  // per second
  std::vector<double> ratio{};            // updates / roof
  std::vector<double> gflops{};           // of the roof
  std::vector<double> sgemm_gflops{};     // of 1024^3
  std::vector<double> over_sgemm{};       // gflops / sgemm_gflops
};

double step_flop(const std::vector<Product>& products) {
  double flop = 0;
  for (const Product& product : products) flop += product.count * product.flop();
  return flop;
}

Result<Series> measure(int threads, const LearnerBenchmarkOptions& options,
                       const std::vector<Product>& products) {
  Result<std::unique_ptr<Subject>> subject = Subject::make(threads);
  if (!subject) return tl::unexpected(subject.error());
  at::set_num_threads(threads);
  const Product cube{"sgemm", 1024, 1024, 1024, false, false, 1};
  const double flop = step_flop(products);
  Series series{.threads = threads, .products = std::vector<ProductTime>(products.size())};
  for (int round = 0; round < options.rounds; ++round) {
    const Result<double> update = (*subject)->time(options.updates);
    if (!update) return tl::unexpected(update.error());
    double roof = 0;
    for (std::size_t i = 0; i < products.size(); ++i) {
      const ProductTime time = time_product(products[i], options.repeats);
      roof += products[i].count * time.seconds;
      ProductTime& best = series.products[i];
      if (round == 0 || time.seconds < best.seconds) best = time;
    }
    const double sgemm = cube.flop() / time_mkl(cube, std::min(options.repeats, 5)) / 1e9;
    series.updates.push_back(1 / *update);
    series.roof.push_back(1 / roof);
    series.ratio.push_back(roof / *update);
    series.gflops.push_back(flop / roof / 1e9);
    series.sgemm_gflops.push_back(sgemm);
    series.over_sgemm.push_back(series.gflops.back() / sgemm);
  }
  return series;
}

Json spread(const std::vector<double>& values) {
  return {{"min", *std::min_element(values.begin(), values.end())},
          {"median", median(values)},
          {"max", *std::max_element(values.begin(), values.end())}};
}

std::string ratio_name(int threads) {
  return "roof_" + std::to_string(threads) + (threads == 1 ? "_thread" : "_threads");
}

Json to_json(const std::vector<Series>& all, const std::vector<Product>& products, int rounds) {
  Json json{{"benchmark", "learner"},   {"updates_per_second", median(all.front().updates)},
            {"rounds", rounds},         {"onednn", onednn_found()},
            {"results", Json::array()}, {"products", Json::array()},
            {"ratios", Json::object()}};
  for (const Series& series : all) {
    json["results"].push_back({{"threads", series.threads},
                               {"updates_per_second", spread(series.updates)},
                               {"roof_updates_per_second", spread(series.roof)},
                               {"ratio", spread(series.ratio)},
                               {"roof_gflops", spread(series.gflops)},
                               {"sgemm_1024_gflops", spread(series.sgemm_gflops)},
                               {"roof_gflops_over_sgemm", spread(series.over_sgemm)}});
    json["ratios"][ratio_name(series.threads)] = median(series.ratio);
  }
  json["ratios"]["roof_gflops_over_sgemm"] = median(all.front().over_sgemm);
  for (std::size_t i = 0; i < products.size(); ++i) {
    const Product& p = products[i];
    const ProductTime& time = all.front().products[i];
    json["products"].push_back({{"name", p.name},
                                {"m", p.m},
                                {"n", p.n},
                                {"k", p.k},
                                {"count", p.count},
                                {"microseconds", time.seconds * 1e6},
                                {"gflops", p.flop() / time.seconds / 1e9},
                                {"library", time.library}});
  }
  return json;
}

__attribute__((format(printf, 1, 2))) std::string line(const char* format, ...) {
  char buffer[200];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(buffer, sizeof(buffer), format, arguments);
  va_end(arguments);
  return std::string(buffer) + "\n";
}

std::string to_text(const std::vector<Series>& all, const std::vector<Product>& products,
                    int rounds) {
  std::string text =
      line("products of the roof, %.2f GFLOP a step; times on %d thread%s",
           step_flop(products) / 1e9, all.front().threads, all.front().threads == 1 ? "" : "s");
  text += line("%-34s %5s %5s %5s %6s %9s %8s  %s", "product", "m", "n", "k", "count", "us",
               "GFLOP/s", "fastest");
  for (std::size_t i = 0; i < products.size(); ++i) {
    const Product& p = products[i];
    const ProductTime& time = all.front().products[i];
    text += line("%-34s %5ld %5ld %5ld %6d %9.1f %8.1f  %s", p.name.c_str(), p.m, p.n, p.k, p.count,
                 time.seconds * 1e6, p.flop() / time.seconds / 1e9, time.library.c_str());
  }
  if (!onednn_found())
    text += line("oneDNN is not installed or does not work here: it took no part");
  text += line("\nmedians of %d rounds", rounds);
  text += line("%-8s %10s %8s %22s %14s %14s", "threads", "updates/s", "roof/s", "ratio (min..max)",
               "roof GFLOP/s", "sgemm GFLOP/s");
  for (const Series& series : all) {
    const auto [low, high] = std::minmax_element(series.ratio.begin(), series.ratio.end());
    text += line("%-8d %10.1f %8.1f %8.3f (%.3f..%.3f) %14.1f %14.1f", series.threads,
                 median(series.updates), median(series.roof), median(series.ratio), *low, *high,
                 median(series.gflops), median(series.sgemm_gflops));
  }
  return text;
}

Result<void> validate(const LearnerBenchmarkOptions& options) {
  const bool threads_fit =
      !options.threads.empty() && std::all_of(options.threads.begin(), options.threads.end(),
                                              [](int threads) { return threads >= 1; });
  if (options.rounds < 1 || options.updates < 1 || options.repeats < 1 || !threads_fit)
    return fail(ErrorCode::kInvalidArgument,
                "The learner's benchmark needs rounds, updates, repeats and thread counts of at "
                "least 1.");
  return {};
}

}  // namespace

LearnerContext benchmark_context() {
  LearnerContext context;
  context.seed = 1;
  context.spec = {
      .name = "benchmark",
      .observations = {{"observation", DType::kF32, {kObservation}}},
      .action = {.low = std::vector<double>(kAction, -1), .high = std::vector<double>(kAction, 1)}};
  return context;
}

replay::Batch benchmark_batch(const Learner& learner) {
  replay::Batch batch(learner.batch_columns(), learner.batch_size());
  Random random(2);
  for (const char* name : {"observation", "next_observation", "reward"})
    for (float& value : batch.floats(name)) value = static_cast<float>(random.normal());
  for (float& value : batch.floats("action")) value = static_cast<float>(random.uniform(-1, 1));
  for (float& value : batch.floats("discount")) value = 0.95F;
  for (float& value : batch.floats("weight")) value = 1;
  return batch;
}

Result<LearnerBenchmarkReport> run_learner_benchmark(const LearnerBenchmarkOptions& options) {
  if (Result<void> valid = validate(options); !valid) return tl::unexpected(valid.error());
  const std::vector<Product> products = reference_products();
  std::vector<Series> all;
  const int threads_before = at::get_num_threads();
  for (const int threads : options.threads) {
    Result<Series> series = measure(threads, options, products);
    at::set_num_threads(threads_before);
    if (!series) return tl::unexpected(series.error());
    all.push_back(*std::move(series));
  }
  return LearnerBenchmarkReport{to_text(all, products, options.rounds),
                                to_json(all, products, options.rounds).dump()};
}

}  // namespace troupe::learners

extern "C" __attribute__((visibility("default")))
troupe::Result<troupe::learners::LearnerBenchmarkReport>
troupe_learner_benchmark(const troupe::learners::LearnerBenchmarkOptions& options) {
  return troupe::learners::run_learner_benchmark(options);
}
