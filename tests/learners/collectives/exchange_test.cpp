// The exchanges that need no LibTorch, by bytes, so that sanitizers see them: shared memory and
// ring.
#include "learners/collectives/exchange.hpp"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <numeric>
#include <thread>

#include "learners/collectives/ring.hpp"
#include "learners/collectives/shared_memory.hpp"
#include "tests/learners/collectives/socket_links.hpp"

namespace troupe::learners {
namespace {

using Milliseconds = std::chrono::milliseconds;

void on_ranks(const std::string& kind, int size, const std::function<void(Exchange&)>& work,
              Milliseconds timeout = std::chrono::seconds(60)) {
  SocketRing ring = make_socket_ring(size);
  const std::shared_ptr<SharedRegion> region = *SharedRegion::create(size, 4096);
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      const auto i = static_cast<std::size_t>(rank);
      std::unique_ptr<Exchange> exchange;
      if (kind == "ring")
        exchange = make_ring_exchange(rank, size, std::move(ring.senders[i]),
                                      std::move(ring.receivers[i]), timeout);
      else
        exchange = *make_shared_memory_exchange(region, rank, timeout);
      work(*exchange);
    });
}

class EveryExchange : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Kinds, EveryExchange, testing::Values("ring", "shared_memory"),
                         [](const auto& kind) { return kind.param; });

TEST_P(EveryExchange, GathersReducesAndBroadcasts) {
  for (const int size : {2, 3, 5})
    on_ranks(GetParam(), size, [size](Exchange& exchange) {
      const int rank = exchange.rank();
      for (const std::size_t count : {std::size_t{1}, std::size_t{63}, std::size_t{40000}}) {
        std::vector<std::uint8_t> mine(count, static_cast<std::uint8_t>(rank + 1));
        std::vector<std::uint8_t> all(count * static_cast<std::size_t>(size));
        ASSERT_TRUE(exchange.gather(mine, all));
        for (std::size_t i = 0; i < all.size(); ++i) ASSERT_EQ(all[i], i / count + 1);

        std::vector<double> values(count, rank + 0.5);
        const Elements elements{values.data(), static_cast<std::int64_t>(count), ElementType::kF64};
        ASSERT_TRUE(exchange.reduce(elements, ReduceOp::kSum));
        for (const double value : values) ASSERT_EQ(value, size * size / 2.0);

        std::iota(values.begin(), values.end(), rank);
        ASSERT_TRUE(exchange.broadcast(elements.as_bytes(), size - 1));
        for (std::size_t i = 0; i < count; ++i)
          ASSERT_EQ(values[i], static_cast<double>(i) + size - 1);
      }
    });
}

TEST_P(EveryExchange, TellsTheReasonOfOneThatLeaves) {
  on_ranks(GetParam(), 4, [](Exchange& exchange) {
    if (exchange.rank() == 2) return exchange.leave("no more memory");
    std::vector<float> values(100000);
    const Elements elements{values.data(), 100000, ElementType::kF32};
    const Result<void> done = exchange.reduce(elements, ReduceOp::kMax);
    ASSERT_FALSE(done);
    EXPECT_NE(done.error().message.find("Rank 2 left: no more memory"), std::string::npos)
        << done.error().message;
    EXPECT_FALSE(exchange.broadcast(elements.as_bytes(), 0));
  });
}

TEST_P(EveryExchange, TimesOut) {
  on_ranks(
      GetParam(), 2,
      [](Exchange& exchange) {
        std::vector<std::uint8_t> bytes(1 << 20);
        if (exchange.rank() == 1) std::this_thread::sleep_for(Milliseconds(600));
        EXPECT_FALSE(exchange.broadcast(bytes, 1) && exchange.broadcast(bytes, 0));
      },
      Milliseconds(100));
}

TEST(SharedRegions, AreOpenedByTheirHandleAndCheckedFirst) {
  const std::shared_ptr<SharedRegion> region = *SharedRegion::create(3, 8192);
  const Result<std::shared_ptr<SharedRegion>> same = SharedRegion::open(region->handle());
  ASSERT_TRUE(same) << same.error().message;
  EXPECT_EQ((*same)->ranks(), 3);
  EXPECT_EQ((*same)->slot_bytes(), 8192U);
  EXPECT_FALSE(make_shared_memory_exchange(*same, 3, Milliseconds(1)));
  EXPECT_FALSE(SharedRegion::create(0, 4096));
  EXPECT_FALSE(SharedRegion::create(2, 100));
  EXPECT_FALSE(SharedRegion::open("/proc/self/fd/no"));
  EXPECT_FALSE(SharedRegion::open("/dev/zero"));

  // A header that promises more than is there.
  const int file = ::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  ASSERT_EQ(::ftruncate(file, 1 << 16), 0);
  ASSERT_EQ(::fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK), 0);
  EXPECT_FALSE(SharedRegion::open("/proc/self/fd/" + std::to_string(file)));
  ::close(file);
}

}  // namespace
}  // namespace troupe::learners
