// The in-process collective: the worked example of the replica model, fixed bits, and misuse as
// errors.
#include "learners/collective.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <thread>

#include "models/torch_precompiled.hpp"

namespace troupe::learners {
namespace {

using Tensors = std::vector<at::Tensor>;
using Work = std::function<void(int, Collective&)>;

void on_every_rank(int size, const Work& work,
                   std::chrono::milliseconds timeout = std::chrono::seconds(60)) {
  auto group = make_in_process_group(size, timeout);
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] { work(rank, *group[static_cast<std::size_t>(rank)]); });
}

at::Tensor row(std::initializer_list<double> values) {
  return at::tensor(std::vector<double>(values), at::kDouble);
}

// r0 {a: 1, b: [40, 1]}, r1 {a: 3, b: [2, 98]}: the example of the TF-Replicator proposal.
Tensors example(int rank) {
  return rank == 0 ? Tensors{at::scalar_tensor(1.0, at::kDouble), row({40, 1})}
                   : Tensors{at::scalar_tensor(3.0, at::kDouble), row({2, 98})};
}

TEST(InProcessCollective, ReducesTheWorkedExample) {
  const std::vector<std::tuple<ReduceOp, double, at::Tensor>> cases = {
      {ReduceOp::kSum, 4, row({42, 99})},
      {ReduceOp::kMean, 2, row({21, 49.5})},
      {ReduceOp::kMin, 1, row({2, 1})},
      {ReduceOp::kMax, 3, row({40, 98})}};
  on_every_rank(2, [&](int rank, Collective& collective) {
    for (const auto& [op, a, b] : cases) {
      const Tensors values = example(rank);
      ASSERT_TRUE(collective.all_reduce(values, op, "example"));
      EXPECT_EQ(values[0].item<double>(), a);
      EXPECT_TRUE(values[1].equal(b));
    }
  });
}

TEST(InProcessCollective, GathersAndBroadcastsTheWorkedExample) {
  on_every_rank(2, [&](int rank, Collective& collective) {
    const Tensors values = example(rank);
    const auto gathered = collective.all_gather(values, "gather");
    ASSERT_TRUE(gathered);
    EXPECT_TRUE((*gathered)[0].equal(row({1, 3})));
    EXPECT_TRUE((*gathered)[1].equal(at::stack({row({40, 1}), row({2, 98})})));
    ASSERT_TRUE(collective.broadcast(values, 1, "broadcast"));
    EXPECT_EQ(values[0].item<double>(), 3);
    EXPECT_TRUE(values[1].equal(row({2, 98})));
  });
}

TEST(InProcessCollective, AddsInTheOrderOfTheRanks) {
  constexpr int kRanks = 4;
  constexpr std::int64_t kCount = 100003;  // no multiple of anything
  Tensors inputs;
  for (int rank = 0; rank < kRanks; ++rank)
    inputs.push_back(at::sin(at::arange(kCount, at::kFloat) * (rank + 1)));
  at::Tensor expected = inputs[0].clone();
  for (int rank = 1; rank < kRanks; ++rank)
    expected = expected + inputs[static_cast<std::size_t>(rank)];
  for (int round = 0; round < 5; ++round)
    on_every_rank(kRanks, [&](int rank, Collective& collective) {
      const Tensors values = {inputs[static_cast<std::size_t>(rank)].clone()};
      ASSERT_TRUE(collective.all_reduce(values, ReduceOp::kSum, "sum"));
      EXPECT_TRUE(values[0].equal(expected));
    });
}

TEST(InProcessCollective, OfOneRankChangesNothing) {
  on_every_rank(1, [&](int, Collective& collective) {
    const Tensors values = example(0);
    ASSERT_TRUE(collective.all_reduce(values, ReduceOp::kMean, "alone"));
    EXPECT_TRUE(values[1].equal(row({40, 1})));
  });
}

// Every rank gets an error that holds `words`, and so do all later calls.
void expect_errors(int size, const std::string& words,
                   const std::function<Result<void>(int, Collective&)>& call) {
  on_every_rank(size, [&](int rank, Collective& collective) {
    const Result<void> done = call(rank, collective);
    ASSERT_FALSE(done) << rank;
    EXPECT_NE(done.error().message.find(words), std::string::npos) << done.error().message;
    const Tensors values = {row({1})};
    EXPECT_FALSE(collective.all_reduce(values, ReduceOp::kSum, "later"));
  });
}

TEST(InProcessCollective, NamesTheCallWhenShapesDiffer) {
  expect_errors(3, "'weights'", [](int rank, Collective& collective) {
    const Tensors values = {rank == 2 ? row({1, 2}) : row({1, 2, 3})};
    return collective.all_reduce(values, ReduceOp::kSum, "weights");
  });
}

TEST(InProcessCollective, NamesBothCallsWhenTheOrderDiffers) {
  expect_errors(2, "broadcast 'second'", [](int rank, Collective& collective) {
    const Tensors values = {row({1})};
    return rank == 0 ? collective.all_reduce(values, ReduceOp::kSum, "first")
                     : collective.broadcast(values, 0, "second");
  });
}

TEST(InProcessCollective, RefusesOtherOperationsTypesAndSources) {
  expect_errors(2, "operations differ", [](int rank, Collective& collective) {
    const Tensors values = {row({1})};
    return collective.all_reduce(values, rank == 0 ? ReduceOp::kSum : ReduceOp::kMax, "x");
  });
  expect_errors(2, "contiguous", [](int rank, Collective& collective) {
    const Tensors values = {rank == 0 ? row({1}) : at::zeros({1}, at::kHalf)};
    return collective.all_reduce(values, ReduceOp::kSum, "x");
  });
  expect_errors(2, "no rank 2", [](int, Collective& collective) {
    const Tensors values = {row({1})};
    return collective.broadcast(values, 2, "x");
  });
}

TEST(InProcessCollective, TellsTheOthersWhenAReplicaLeaves) {
  on_every_rank(3, [&](int rank, Collective& collective) {
    if (rank == 1) return collective.leave();
    const Tensors values = {row({1})};
    const Result<void> done = collective.all_reduce(values, ReduceOp::kSum, "loss");
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().message, "Replica 1 left before all_reduce 'loss'.");
  });
}

TEST(InProcessCollective, DoesNotWaitForEverForAReplicaThatStays) {
  on_every_rank(
      2,
      [&](int rank, Collective& collective) {
        if (rank == 1) return;
        const Tensors values = {row({1})};
        const Result<void> done = collective.all_reduce(values, ReduceOp::kSum, "loss");
        ASSERT_FALSE(done);
        EXPECT_NE(done.error().message.find("'loss'"), std::string::npos);
      },
      std::chrono::milliseconds(20));
}

}  // namespace
}  // namespace troupe::learners
