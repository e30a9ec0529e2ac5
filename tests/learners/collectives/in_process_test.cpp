// What only threads of one process can promise each other: the order of additions, and that one
// that ends its step early is noticed at once.
#include "learners/collectives/in_process.hpp"

#include <gtest/gtest.h>

#include "models/torch_precompiled.hpp"
#include "tests/learners/collectives/groups.hpp"

namespace troupe::learners {
namespace {

using Tensors = std::vector<at::Tensor>;

TEST(InProcessCollective, AddsInTheOrderOfTheRanks) {
  constexpr int kRanks = 4;
  constexpr std::int64_t kCount = 100003;  // no multiple of anything
  Tensors inputs;
  for (int rank = 0; rank < kRanks; ++rank)
    inputs.push_back(at::sin(at::arange(kCount, at::kFloat) * (rank + 1)));
  at::Tensor expected = inputs[0].clone();
  for (int rank = 1; rank < kRanks; ++rank)
    expected = expected + inputs[static_cast<std::size_t>(rank)];
  // Shared memory adds in that order too.
  for (const char* kind : {"in_process", "in_process", "shared_memory"})
    on_every_rank(kind, kRanks, [&](int rank, Collective& collective) {
      const Tensors values = {inputs[static_cast<std::size_t>(rank)].clone()};
      ASSERT_TRUE(collective.all_reduce(values, ReduceOp::kSum, "sum"));
      EXPECT_TRUE(values[0].equal(expected));
    });
}

TEST(InProcessCollective, OfOneRankChangesNothing) {
  on_every_rank("in_process", 1, [&](int, Collective& collective) {
    const Tensors values = {at::arange(5, at::kDouble)};
    ASSERT_TRUE(collective.all_reduce(values, ReduceOp::kMean, "alone"));
    EXPECT_TRUE(values[0].equal(at::arange(5, at::kDouble)));
  });
}

TEST(InProcessCollective, IsAnErrorAtOnceWhenARankEndsItsRoundEarly) {
  for (const char* kind : {"in_process", "hierarchical"}) {
    Group group = make_group(kind, 4, std::chrono::minutes(2));
    for (const auto& collective : group) collective->set_active(true);
    on_threads(4, [&](int rank) {
      Collective& collective = *group[static_cast<std::size_t>(rank)];
      if (rank == 2) return collective.set_active(false);
      const Tensors values = {at::zeros({1})};
      const Result<void> done = collective.all_reduce(values, ReduceOp::kSum, "loss");
      ASSERT_FALSE(done);
      EXPECT_NE(done.error().message.find("Replica 2 ended its step before all_reduce 'loss'"),
                std::string::npos)
          << done.error().message;
    });
  }
}

TEST(InProcessCollective, GoesOnInTheNextRound) {
  Group group = make_group("in_process", 3, std::chrono::minutes(2));
  for (int round = 0; round < 200; ++round) {
    for (const auto& collective : group) collective->set_active(true);
    on_threads(3, [&](int rank) {
      Collective& collective = *group[static_cast<std::size_t>(rank)];
      const Tensors values = {at::full({3}, rank, at::kLong)};
      ASSERT_TRUE(collective.all_reduce(values, ReduceOp::kSum, "loss"));
      EXPECT_EQ(values[0].sum().item<std::int64_t>(), 9);
      collective.set_active(false);
    });
  }
}

}  // namespace
}  // namespace troupe::learners
