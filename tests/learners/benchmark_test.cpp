// The benchmark's fixed list and the shape of its report; no figure of speed is judged here.
#include "learners/benchmark.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "learners/benchmark_roof.hpp"

namespace troupe::learners {
namespace {

TEST(LearnerBenchmark, TheRoofIsTheReferenceStepsProducts) {
  double flop = 0;
  int count = 0;
  for (const Product& product : reference_products()) {
    flop += product.count * product.flop();
    count += product.count;
  }
  // Multiply-adds an item: policy 136 960, critic 418 048; without the input gradients of the
  // policy's first layer and of the critic's first layer in the cross-entropy's pass.
  const double policy = 136960, critic = 418048;
  const double wanted = 2 * policy + 3 * critic + policy + critic + (policy - 17 * 256) + critic +
                        (critic - 23 * 512);
  EXPECT_EQ(flop, 2 * 256 * wanted);
  EXPECT_EQ(count, 38);
}

TEST(LearnerBenchmark, LibTorchMultipliesEveryProductRightly) {
  // Times of wrong results are infinite.
  for (const Product& product : reference_products()) {
    EXPECT_TRUE(std::isfinite(time_mkl(product, 1))) << product.name;
    EXPECT_FALSE(time_product(product, 1).library.empty()) << product.name;
  }
}

TEST(LearnerBenchmark, TheMedianIsTheMiddle) {
  EXPECT_EQ(median({3}), 3);
  EXPECT_EQ(median({5, 1, 2}), 2);
}

TEST(LearnerBenchmark, TheReportNamesEveryFigure) {
  const auto report =
      run_learner_benchmark({.rounds = 1, .updates = 1, .repeats = 1, .threads = {1, 2}});
  ASSERT_TRUE(report) << report.error().message;
  const nlohmann::json json = nlohmann::json::parse(report->json);
  EXPECT_GT(json.at("updates_per_second").get<double>(), 0);
  for (const char* ratio : {"roof_1_thread", "roof_2_threads", "roof_gflops_over_sgemm"})
    EXPECT_GT(json.at("ratios").at(ratio).get<double>(), 0) << ratio;
  EXPECT_EQ(json.at("results").size(), 2U);
  EXPECT_EQ(json.at("products").size(), reference_products().size());
  EXPECT_THAT(report->text, testing::HasSubstr("updates/s"));
}

TEST(LearnerBenchmark, OptionsBelowOneAreRefused) {
  for (const LearnerBenchmarkOptions& options :
       {LearnerBenchmarkOptions{.rounds = 0}, LearnerBenchmarkOptions{.updates = 0},
        LearnerBenchmarkOptions{.repeats = 0}, LearnerBenchmarkOptions{.threads = {}},
        LearnerBenchmarkOptions{.threads = {0}}}) {
    const auto report = run_learner_benchmark(options);
    ASSERT_FALSE(report);
    EXPECT_EQ(report.error().code, ErrorCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace troupe::learners
