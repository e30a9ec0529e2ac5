// Collectives between real processes: equal bits after many steps, and what the others see when one
// is killed.
#include <gtest/gtest.h>

#include <ATen/Parallel.h>
#include <unistd.h>

#include <csignal>

#include "learners/replicas/local_processes.hpp"
#include "models/torch_precompiled.hpp"
#include "tests/learners/collectives/groups.hpp"

namespace troupe::learners {
namespace {

using Tensors = std::vector<at::Tensor>;

// The exchange of a forked process.
std::unique_ptr<Exchange> exchange_of(const std::string& kind, int rank, int size, SocketRing& ring,
                                      const std::shared_ptr<SharedRegion>& region,
                                      std::shared_ptr<RequestLink> link, Milliseconds timeout) {
  Result<std::unique_ptr<Exchange>> made;
  if (kind == "gloo")
    made = make_gloo_exchange(
        std::make_shared<RendezvousClient>(std::move(link), "test/", Milliseconds(20000)), rank,
        size, {.timeout = timeout});
  if (kind == "shared_memory") made = make_shared_memory_exchange(region, rank, timeout);
  if (kind == "ring") {
    auto sender = std::move(ring.senders[static_cast<std::size_t>(rank)]);
    auto receiver = std::move(ring.receivers[static_cast<std::size_t>(rank)]);
    ring = {};  // the ends of others
    made = make_ring_exchange(rank, size, std::move(sender), std::move(receiver), timeout);
  }
  EXPECT_TRUE(made) << made.error().message;
  return made ? *std::move(made) : nullptr;
}

class Processes : public testing::TestWithParam<std::string> {
 protected:
  // Runs work(rank, collective) in processes of their own.
  std::vector<LocalProcess> run(
      int size, Milliseconds timeout, const std::function<void(int, Collective&)>& work,
      const std::function<void(std::vector<LocalProcess>&)>& meanwhile = {}) {
    SocketRing ring = make_socket_ring(size);
    const std::shared_ptr<SharedRegion> region = *SharedRegion::create(size);
    return run_local_processes(
        size,
        [&](int rank, std::shared_ptr<RequestLink> link) {
          ::alarm(280);  // a hang fails
          at::set_num_threads(1);
          auto exchange =
              exchange_of(GetParam(), rank, size, ring, region, std::move(link), timeout);
          if (!exchange) return 1;
          const auto collective = make_exchanged_collective(std::move(exchange), "process");
          work(rank, *collective);
          return HasFailure() ? 1 : 0;
        },
        {.meanwhile = [&](std::vector<LocalProcess>& children) {
          ring = {};  // the parent's copies would keep the links of a dead child open
          if (meanwhile) meanwhile(children);
        }});
  }
};

INSTANTIATE_TEST_SUITE_P(Kinds, Processes, testing::Values("gloo", "shared_memory", "ring"),
                         [](const auto& kind) { return kind.param; });

TEST_P(Processes, HaveEqualBitsAfterAThousandSteps) {
  const auto children = run(2, std::chrono::seconds(60), [](int rank, Collective& collective) {
    // A walk in which every step depends on all bits before it.
    at::Tensor state = at::zeros({1001});
    for (int step = 0; step < 1000; ++step) {
      const Tensors change = {
          at::sin(at::arange(1001, at::kFloat) * (rank + 1) + state * 3 + step)};
      ASSERT_TRUE(collective.all_reduce(change, ReduceOp::kMean, "step"));
      state += change[0];
    }
    const Result<Tensors> all = collective.all_gather(Tensors{state}, "states");
    ASSERT_TRUE(all);
    EXPECT_TRUE((*all)[0][0].equal((*all)[0][1]));
    EXPECT_GT(state.abs().max().item<float>(), 0);
  });
  for (const LocalProcess& child : children) EXPECT_TRUE(child.clean());
}

TEST_P(Processes, HearOfAKilledOneWithinTheTimeout) {
  const auto children = run(3, std::chrono::seconds(60), [](int rank, Collective& collective) {
    const Tensors values = {at::zeros({1000})};
    ASSERT_TRUE(collective.all_reduce(values, ReduceOp::kSum, "before"));
    if (rank == 1) ::raise(SIGKILL);
    const auto start = std::chrono::steady_clock::now();
    const Result<void> done = collective.all_reduce(values, ReduceOp::kSum, "gradients");
    ASSERT_FALSE(done);
    EXPECT_NE(done.error().message.find("'gradients'"), std::string::npos) << done.error().message;
    // Long before the timeout: the death itself is seen.
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(30));
  });
  EXPECT_TRUE(children[0].clean());
  EXPECT_TRUE(children[1].killed_by(SIGKILL));
  EXPECT_TRUE(children[2].clean());
}

TEST_P(Processes, GiveUpOnAFrozenOneWithinTheTimeout) {
  const auto children = run(
      2, std::chrono::seconds(8),  // long enough for a busy machine to start both
      [](int rank, Collective& collective) {
        const Tensors values = {at::zeros({1000})};
        ASSERT_TRUE(collective.all_reduce(values, ReduceOp::kSum, "before"));
        if (rank == 1) ::raise(SIGSTOP);
        EXPECT_FALSE(collective.all_reduce(values, ReduceOp::kSum, "gradients"));
      },
      [](std::vector<LocalProcess>& running) {
        // Rank 0 ends by itself, then the frozen one wakes and finds out.
        running[0].wait();
        ::kill(running[1].id, SIGCONT);
      });
  EXPECT_TRUE(children[1].clean());
}

}  // namespace
}  // namespace troupe::learners
