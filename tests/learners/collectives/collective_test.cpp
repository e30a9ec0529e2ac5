// What every collective holds: the worked example of the replica model, equal bits everywhere, and
// misuse as an error on every rank that names the call.
#include "learners/collective.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <tuple>

#include "models/torch_precompiled.hpp"
#include "tests/learners/collectives/groups.hpp"

namespace troupe::learners {
namespace {

using Tensors = std::vector<at::Tensor>;

class EveryCollective : public testing::TestWithParam<std::string> {
 protected:
  void on_ranks(int size, const std::function<void(int, Collective&)>& work,
                Milliseconds timeout = std::chrono::seconds(60)) {
    on_every_rank(GetParam(), size, work, timeout);
  }
  // Runs `call` on every rank and expects an error on each that contains all of `parts`.
  void expect_errors(int size, const std::vector<std::string>& parts,
                     const std::function<Result<void>(int, Collective&)>& call) {
    on_ranks(size, [&](int rank, Collective& collective) {
      const Result<void> done = call(rank, collective);
      ASSERT_FALSE(done) << "rank " << rank;
      for (const std::string& part : parts)
        EXPECT_NE(done.error().message.find(part), std::string::npos)
            << "rank " << rank << ": " << done.error().message;
      // And it stays failed.
      const Tensors values = {at::zeros({1})};
      EXPECT_FALSE(collective.all_reduce(values, ReduceOp::kSum, "later"));
    });
  }
};

INSTANTIATE_TEST_SUITE_P(Kinds, EveryCollective,
                         testing::Values("in_process", "gloo", "shared_memory", "ring",
                                         "hierarchical"),
                         [](const auto& kind) { return kind.param; });

at::Tensor row(std::initializer_list<double> values) {
  return at::tensor(std::vector<double>(values), at::kDouble);
}

// r0 {a: 1, b: [40, 1]}, r1 {a: 3, b: [2, 98]}: the example of the TF-Replicator proposal.
Tensors example(int rank) {
  return rank == 0 ? Tensors{at::scalar_tensor(1.0, at::kDouble), row({40, 1})}
                   : Tensors{at::scalar_tensor(3.0, at::kDouble), row({2, 98})};
}

TEST_P(EveryCollective, ComputesTheWorkedExample) {
  const std::vector<std::tuple<ReduceOp, double, at::Tensor>> cases = {
      {ReduceOp::kSum, 4, row({42, 99})},
      {ReduceOp::kMean, 2, row({21, 49.5})},
      {ReduceOp::kMin, 1, row({2, 1})},
      {ReduceOp::kMax, 3, row({40, 98})}};
  on_ranks(2, [&](int rank, Collective& collective) {
    EXPECT_EQ(collective.rank(), rank);
    EXPECT_EQ(collective.size(), 2);
    for (const auto& [op, a, b] : cases) {
      const Tensors values = example(rank);
      ASSERT_TRUE(collective.all_reduce(values, op, "example"));
      EXPECT_EQ(values[0].item<double>(), a);
      EXPECT_TRUE(values[1].equal(b));
    }
    const Tensors values = example(rank);
    const Result<Tensors> gathered = collective.all_gather(values, "gather");
    ASSERT_TRUE(gathered) << gathered.error().message;
    EXPECT_TRUE((*gathered)[0].equal(row({1, 3})));
    EXPECT_TRUE((*gathered)[1].equal(at::stack({row({40, 1}), row({2, 98})})));
    ASSERT_TRUE(collective.broadcast(values, 1, "broadcast"));
    EXPECT_EQ(values[0].item<double>(), 3);
    EXPECT_TRUE(values[1].equal(row({2, 98})));
  });
}

TEST_P(EveryCollective, GivesEqualBitsOnEveryRankAndInEveryRun) {
  constexpr int kRanks = 4;
  constexpr std::int64_t kCount = 100003;  // no multiple of anything
  Tensors inputs;
  for (int rank = 0; rank < kRanks; ++rank)
    inputs.push_back(at::sin(at::arange(kCount, at::kFloat) * (rank + 1)));
  const at::Tensor expected = inputs[0] + inputs[1] + inputs[2] + inputs[3];
  at::Tensor first;
  for (int round = 0; round < 3; ++round) {
    Tensors sums(kRanks);
    on_ranks(kRanks, [&](int rank, Collective& collective) {
      const auto i = static_cast<std::size_t>(rank);
      const Tensors values = {inputs[i].clone()};
      ASSERT_TRUE(collective.all_reduce(values, ReduceOp::kSum, "sum"));
      sums[i] = values[0];
    });
    if (round == 0) first = sums[0];
    for (const at::Tensor& sum : sums) EXPECT_TRUE(sum.equal(first));
  }
  EXPECT_TRUE(first.allclose(expected, 1e-5, 1e-5));
}

TEST_P(EveryCollective, TakesEveryTypeAndShapeAndManySmallTensors) {
  for (const at::ScalarType type :
       {at::kFloat, at::kDouble, at::kInt, at::kLong, at::kHalf, at::kBFloat16})
    on_ranks(3, [&](int rank, Collective& collective) {
      Tensors values = {at::full({}, rank + 1, type), at::empty({0, 3}, type)};
      for (int i = 0; i < 40; ++i) values.push_back(at::full({i % 7, 5}, i + rank, type));
      values.push_back(at::full({70001}, rank, at::kFloat));
      ASSERT_TRUE(collective.all_reduce(values, ReduceOp::kSum, "many"));
      EXPECT_TRUE(values[0].equal(at::full({}, 6, type)));
      for (int i = 0; i < 40; ++i)
        EXPECT_TRUE(
            values[static_cast<std::size_t>(i + 2)].equal(at::full({i % 7, 5}, 3 * i + 3, type)));
      EXPECT_TRUE(values.back().equal(at::full({70001}, 3, at::kFloat)));
    });
  on_ranks(3, [&](int rank, Collective& collective) {
    const Tensors flags = {at::full({3}, rank == 1, at::kBool), at::full({2}, rank, at::kByte)};
    ASSERT_TRUE(collective.broadcast(flags, 1, "flags"));
    EXPECT_TRUE(flags[0].all().item<bool>());
    const Result<Tensors> gathered = collective.all_gather(flags, "flags again");
    ASSERT_TRUE(gathered);
    EXPECT_EQ((*gathered)[1].sizes().vec(), (std::vector<std::int64_t>{3, 2}));
  });
}

TEST_P(EveryCollective, NamesTheCallAndTheTensorWhenShapesOrTypesDiffer) {
  expect_errors(3, {"'weights'", "tensor 1", "Float [3]", "Float [2]"},
                [](int rank, Collective& collective) {
                  const Tensors values = {at::zeros({4}), at::zeros({rank == 2 ? 2 : 3})};
                  return collective.all_reduce(values, ReduceOp::kSum, "weights");
                });
  expect_errors(2, {"'weights'", "Float [3]", "Double [3]"}, [](int rank, Collective& collective) {
    const Tensors values = {at::zeros({3}, rank == 0 ? at::kFloat : at::kDouble)};
    return collective.all_reduce(values, ReduceOp::kSum, "weights");
  });
}

TEST_P(EveryCollective, NamesBothCallsWhenTheOrderDiffers) {
  expect_errors(2, {"'first'", "broadcast 'second'"}, [](int rank, Collective& collective) {
    const Tensors values = {row({1})};
    return rank == 0 ? collective.all_reduce(values, ReduceOp::kSum, "first")
                     : collective.broadcast(values, 0, "second");
  });
}

TEST_P(EveryCollective, RefusesOtherOperationsNumbersTypesAndSources) {
  expect_errors(2, {"operations differ"}, [](int rank, Collective& collective) {
    const Tensors values = {row({1})};
    return collective.all_reduce(values, rank == 0 ? ReduceOp::kSum : ReduceOp::kMax, "x");
  });
  expect_errors(4, {"numbers of tensors differ"}, [](int rank, Collective& collective) {
    const Tensors values(rank == 3 ? 1 : 2, row({1}));
    return collective.all_reduce(values, ReduceOp::kSum, "x");
  });
  expect_errors(2, {"'x'", "contiguous"}, [](int rank, Collective& collective) {
    const Tensors values = {rank == 0 ? at::zeros({2, 2}) : at::zeros({2, 2}).t()};
    return collective.all_reduce(values, ReduceOp::kSum, "x");
  });
  expect_errors(2, {"'x'", "only f32"}, [](int, Collective& collective) {
    const Tensors values = {at::zeros({1}, at::kBool)};
    return collective.all_reduce(values, ReduceOp::kSum, "x");
  });
  expect_errors(2, {"no rank"}, [](int, Collective& collective) {
    const Tensors values = {row({1})};
    return collective.broadcast(values, 2, "x");
  });
}

TEST_P(EveryCollective, TellsEveryoneWhenARankLeaves) {
  std::atomic<int> told = 0;
  on_ranks(4, [&](int rank, Collective& collective) {
    const Tensors values = {row({1})};
    ASSERT_TRUE(collective.all_reduce(values, ReduceOp::kSum, "before"));
    if (rank == 1) return collective.leave("it ran out of memory");
    const Result<void> done = collective.all_reduce(values, ReduceOp::kSum, "loss");
    ASSERT_FALSE(done);
    EXPECT_NE(done.error().message.find("'loss'"), std::string::npos) << done.error().message;
    told += done.error().message.find("it ran out of memory") != std::string::npos;
  });
  EXPECT_EQ(told, 3);
}

TEST_P(EveryCollective, DoesNotWaitForEverForARankThatStays) {
  std::atomic<bool> failed = false;
  const auto start = std::chrono::steady_clock::now();
  on_ranks(
      3,
      [&](int rank, Collective& collective) {
        const Tensors values = {row({1})};
        ASSERT_TRUE(collective.all_reduce(values, ReduceOp::kSum, "before"));
        // Alive, and busy with something else.
        if (rank == 1)
          while (!failed) std::this_thread::sleep_for(std::chrono::milliseconds(10));
        if (rank == 1) std::this_thread::sleep_for(std::chrono::milliseconds(500));
        const Result<void> done = collective.all_reduce(values, ReduceOp::kSum, "loss");
        EXPECT_FALSE(done);
        if (!done) {
          EXPECT_NE(done.error().message.find("'loss'"), std::string::npos);
        }
        failed = true;
      },
      std::chrono::seconds(2));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(30));
}

}  // namespace
}  // namespace troupe::learners
