// How fast the learner is beside what its matrix products alone would cost: `troupe bench learner`.
// Torch-free; the function lives in libtroupe_learners.so and is looked up by name. One call at a
// time; it measures on the calling thread and on threads of its own.
//
// Learner: the real thing, make_learner("d4pg") with default options, one replica, update() on a
// batch of 256 items with 17 observations and 6 actions: policy 256-256-256, critic 512-512-256, 51
// atoms, LayerNorm.
//
// Roof: a fixed list (reference_products()), whatever the learner really computes. Per update the
// plain step evaluates the policy twice (online, target) and the critic three times (at the batch's
// action, at the policy's, target); it takes weight gradients of policy and critic once, gradients
// by every hidden layer's input once for the policy and twice for the critic, and by the critic's
// whole input once. Those are 38 products of 256 rows, 1.56 GFLOP. Each counts with its time on the
// fastest of LibTorch's BLAS (MKL), oneDNN and Eigen, operands warm; nothing else counts: no bias,
// no activation, no loss, no optimizer. 100 % is therefore out of reach of a learner that calls
// these libraries, and not a bound for one whose products are its own.
//
// Where the learner's time goes on one thread of a Zen 5 core with AVX-512 (perf, share of the
// learner's own): the products 88 % (forward 45, input gradients 26, weight gradients 17, with
// bias, ELU and its derivative inside), LayerNorm and tanh 3.8, Adam 2.8, packing weights for the
// backward pass 1.3, bias and LayerNorm sums 0.8, gradient norms 0.7, transposing activations for
// the weight gradients 0.7, softmax, projection, cross-entropy and the rest below 1. The products
// alone run at 240 of the 262 GFLOP/s that the core's two multipliers give, the libraries' at 240
// too; Adam runs at the third cache's speed.
//
// Times are medians within a round on both sides, rounds take both in turns, and what is reported
// is the median of the rounds' ratios.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "envs/spec/result.hpp"
#include "learners/learner.hpp"

namespace troupe::learners {

// What the reference learner is made for, 17 numbers observed and 6 of an action, and a batch of
// random numbers for it, of as many items as it takes.
LearnerContext benchmark_context();
replay::Batch benchmark_batch(const Learner& learner);

struct LearnerBenchmarkOptions {
  // Short rounds, many of them: what else the machine does changes from second to second.
  int rounds = 21;                    // at least 1; 5 or more for figures to be quoted
  int updates = 8;                    // timed learner updates in each round
  int repeats = 3;                    // timed runs of every product in each round
  std::vector<int> threads = {1, 2};  // measured one after the other
};

struct LearnerBenchmarkReport {
  std::string text;  // a table for people, several lines
  // One object: updates_per_second (one thread), results[] per thread count with min, median and
  // max, products[] of the roof, ratios {roof_1_thread, roof_2_threads, roof_gflops_over_sgemm}.
  std::string json;
};

// kInvalidArgument: an option below 1. About ten seconds a thread count at the defaults.
Result<LearnerBenchmarkReport> run_learner_benchmark(const LearnerBenchmarkOptions& options);

// Signature of the C symbol "troupe_learner_benchmark" exported by libtroupe_learners.so.
using RunLearnerBenchmark = Result<LearnerBenchmarkReport>(const LearnerBenchmarkOptions&);

}  // namespace troupe::learners
