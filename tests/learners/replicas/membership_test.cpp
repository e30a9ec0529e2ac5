// Groups that lose members and go on: nobody differs afterwards, and nobody waits for ever.
#include "learners/replicas/membership.hpp"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>

#include "learners/collectives/exchanged.hpp"
#include "learners/replicas/local_processes.hpp"
#include "learners/replicas/processes.hpp"
#include "models/torch_precompiled.hpp"
#include "tests/learners/collectives/groups.hpp"

namespace troupe::learners {
namespace {

using Tensors = std::vector<at::Tensor>;

TEST(Membership, TakesTheStateOfTheLowestRankThatIsFurthest) {
  for (const char* kind : {"in_process", "shared_memory"})
    on_every_rank(kind, 4, [](int rank, Collective& collective) {
      const std::uint64_t applied[] = {6, 7, 7, 0};
      const Tensors state = {at::full({5}, rank, at::kFloat), at::full({}, rank, at::kLong)};
      const auto agreed = agree_on_state(collective, applied[rank], state);
      ASSERT_TRUE(agreed) << agreed.error().message;
      EXPECT_EQ(*agreed, 7U);
      EXPECT_TRUE(state[0].equal(at::full({5}, 1, at::kFloat)));
      EXPECT_EQ(state[1].item<int>(), 1);
    });
}

// Rank 0 of two, whose other one is ahead and dies while it gives its state.
class HalfAState final : public Collective {
 public:
  int rank() const override { return 0; }
  int size() const override { return 2; }
  Result<void> all_reduce(std::span<const at::Tensor>, ReduceOp, std::string_view) override {
    return {};
  }
  Result<Tensors> all_gather(std::span<const at::Tensor>, std::string_view) override {
    return Tensors{at::arange(2, at::kLong)};
  }
  Result<void> broadcast(std::span<const at::Tensor> tensors, int from, std::string_view) override {
    EXPECT_EQ(from, 1);
    tensors[0].fill_(7);
    return fail(ErrorCode::kUnavailable, "rank 1 died");
  }
  void leave(std::string_view) override {}
};

TEST(Membership, KeepsItsOwnStateWhenOnlyHalfOfAnotherCame) {
  HalfAState group;
  const Tensors state = {at::ones({3}), at::ones({2})};
  EXPECT_FALSE(agree_on_state(group, 0, state));
  for (const at::Tensor& tensor : state) EXPECT_TRUE(tensor.equal(at::ones_like(tensor)));
}

constexpr std::uint64_t kUpdates = 120;

// Momentum on a loss whose data depend on rank and update: [parameters, moments].
void update(const Tensors& state, const at::Tensor& gradient) {
  state[1].mul_(0.9).add_(gradient);
  state[0].sub_(state[1] * 0.05);
}
at::Tensor gradient_of(const Tensors& state, int rank, std::uint64_t step) {
  return at::sin(state[0] + rank) + static_cast<double>(step % 7) * 0.1;
}

// Trains as `rank` from generation to generation until done; dies before update `death`, if that is
// not 0.
bool member(int rank, std::uint64_t death, int first_generation,
            const std::shared_ptr<RequestLink>& link, const std::string& transport) {
  at::set_num_threads(1);
  ::alarm(280);  // a hang fails
  const Tensors state = {at::linspace(-1, 1, 17), at::zeros({17})};
  std::uint64_t applied = 0;
  ReplicationOptions options;
  options.transport = transport;
  for (int generation = first_generation; generation < 4; ++generation) {
    const Processes processes{.index = rank,
                              .count = 3,
                              .rendezvous = link,
                              .name = "replicas-" + std::to_string(generation)};
    auto exchange = connect(processes, options, "all", rank, 3);
    if (!exchange) return std::fprintf(stderr, "%s\n", exchange.error().message.c_str()), false;
    const auto group = make_exchanged_collective(*std::move(exchange), "process");
    const auto agreed = agree_on_state(*group, applied, state);
    if (!agreed) continue;
    applied = *agreed;
    while (applied < kUpdates) {
      if (death != 0 && applied + 1 == death) ::raise(SIGKILL);
      const Tensors gradient = {gradient_of(state, rank, applied)};
      if (!group->all_reduce(gradient, ReduceOp::kMean, "gradients")) break;
      update(state, gradient[0]);
      ++applied;
    }
    if (applied < kUpdates) continue;
    // As if nobody had died, to the last bit of what three ranks compute.
    Tensors expected = {at::linspace(-1, 1, 17), at::zeros({17})};
    for (std::uint64_t step = 0; step < kUpdates; ++step) {
      at::Tensor sum = gradient_of(expected, 0, step);
      for (int other = 1; other < 3; ++other) sum = sum + gradient_of(expected, other, step);
      update(expected, sum / 3);
    }
    return transport == "shared_memory" ? state[0].equal(expected[0])
                                        : state[0].allclose(expected[0], 1e-5, 1e-5);
  }
  return false;
}

TEST(Membership, GoesOnWithAReplacementAsIfNobodyHadDied) {
  for (const char* transport : {"shared_memory", "gloo"}) {
    const auto ended = run_local_processes(4, [&](int index, std::shared_ptr<RequestLink> link) {
      // Processes 0 to 2 begin; 1 dies at update 50; process 3 takes its place.
      const bool good = index == 3 ? member(1, 0, 1, link, transport)
                                   : member(index, index == 1 ? 50 : 0, 0, link, transport);
      return good ? 0 : 1;
    });
    for (const int index : {0, 2, 3}) EXPECT_TRUE(ended[static_cast<std::size_t>(index)].clean());
    EXPECT_TRUE(ended[1].killed_by(SIGKILL));
  }
}

TEST(Membership, SurvivesTwentyDeathsOfAnyRank) {
  // The same experiment, twenty times at different moments: no survivor hangs, none is lost with
  // it.
  for (int round = 0; round < 20; ++round) {
    const int victim = round % 3;
    const auto ended = run_local_processes(3, [&](int index, std::shared_ptr<RequestLink> link) {
      ::alarm(60);
      at::set_num_threads(1);
      ReplicationOptions options;
      const Processes processes{.index = index, .count = 3, .rendezvous = std::move(link)};
      const auto group =
          make_exchanged_collective(*connect(processes, options, "all", index, 3), "process");
      const Tensors values = {at::zeros({1 + round * 5000})};
      for (int step = 0; step < 10 + round; ++step) {
        if (index == victim && step == 5 + round / 2) ::raise(SIGKILL);
        if (!group->all_reduce(values, ReduceOp::kSum, "gradients")) return 0;
      }
      return 1;
    });
    for (int index = 0; index < 3; ++index) {
      const LocalProcess& process = ended[static_cast<std::size_t>(index)];
      EXPECT_TRUE(index == victim ? process.killed_by(SIGKILL) : process.clean()) << round;
    }
  }
}

TEST(Membership, StartsTenGroupsAtOnceWithoutAPortInCommon) {
  std::vector<std::jthread> groups;
  for (int i = 0; i < 10; ++i)
    groups.emplace_back([] {
      on_every_rank("gloo", 2, [](int, Collective& collective) {
        const Tensors values = {at::ones({3})};
        ASSERT_TRUE(collective.all_reduce(values, ReduceOp::kSum, "sum"));
        EXPECT_TRUE(values[0].equal(at::full({3}, 2.0F)));
      });
    });
}

}  // namespace
}  // namespace troupe::learners
