// Groups of every kind of collective, one thread a rank, for tests that hold for all of them.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <thread>

#include "learners/collectives/exchanged.hpp"
#include "learners/collectives/gloo.hpp"
#include "learners/collectives/hierarchical.hpp"
#include "learners/collectives/in_process.hpp"
#include "learners/collectives/ring.hpp"
#include "learners/collectives/shared_memory.hpp"
#include "tests/learners/collectives/socket_links.hpp"

namespace troupe::learners {

using Group = std::vector<std::unique_ptr<Collective>>;
using Milliseconds = std::chrono::milliseconds;

// Runs work(rank) on a thread for each rank and waits.
inline void on_threads(int size, const std::function<void(int)>& work) {
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < size; ++rank) threads.emplace_back([&, rank] { work(rank); });
}

// Every rank's exchange, made at the same time.
inline std::vector<std::unique_ptr<Exchange>> make_exchanges(const std::string& kind, int size,
                                                             Milliseconds timeout) {
  std::vector<std::unique_ptr<Exchange>> ranks(static_cast<std::size_t>(size));
  SocketRing ring;
  if (kind == "ring") ring = make_socket_ring(size);
  std::shared_ptr<SharedRegion> region;
  // Small slots, so that tests of some thousand elements take several rounds.
  if (kind == "shared_memory") region = *SharedRegion::create(size, 4096);
  const auto table = std::make_shared<RendezvousTable>();
  on_threads(size, [&](int rank) {
    const auto i = static_cast<std::size_t>(rank);
    Result<std::unique_ptr<Exchange>> made;
    if (kind == "ring")
      made = make_ring_exchange(rank, size, std::move(ring.senders[i]),
                                std::move(ring.receivers[i]), timeout);
    if (kind == "shared_memory") made = make_shared_memory_exchange(region, rank, timeout);
    if (kind == "gloo")
      made = make_gloo_exchange(
          std::make_shared<RendezvousClient>(make_local_link(table), "test/", Milliseconds(20000)),
          rank, size, {.timeout = timeout});
    EXPECT_TRUE(made) << made.error().message;
    if (made) ranks[i] = *std::move(made);
  });
  return ranks;
}

// "in_process" | "gloo" | "shared_memory" | "ring" | "hierarchical": pairs of threads, as if in
// processes that share memory.
inline Group make_group(const std::string& kind, int size, Milliseconds timeout) {
  if (kind == "in_process") return make_in_process_group(size, timeout);
  Group group(static_cast<std::size_t>(size));
  const bool hierarchical = kind == "hierarchical";
  const int local = hierarchical && size % 2 == 0 && size > 2 ? 2 : 1, processes = size / local;
  auto exchanges = make_exchanges(hierarchical ? "shared_memory" : kind, processes, timeout);
  on_threads(processes, [&](int process) {
    auto between =
        make_exchanged_collective(std::move(exchanges[static_cast<std::size_t>(process)]),
                                  hierarchical ? "process" : "replica");
    if (!hierarchical) {
      group[static_cast<std::size_t>(process)] = std::move(between);
      return;
    }
    Result<Group> threads = make_hierarchical_group(local, std::move(between), timeout);
    ASSERT_TRUE(threads) << threads.error().message;
    for (int i = 0; i < local; ++i)
      group[static_cast<std::size_t>(process * local + i)] =
          std::move((*threads)[static_cast<std::size_t>(i)]);
  });
  return group;
}

inline void on_every_rank(const std::string& kind, int size,
                          const std::function<void(int, Collective&)>& work,
                          Milliseconds timeout = std::chrono::seconds(60)) {
  Group group = make_group(kind, size, timeout);
  on_threads(size, [&](int rank) {
    work(rank, *group[static_cast<std::size_t>(rank)]);
    group[static_cast<std::size_t>(rank)].reset();
  });
}

}  // namespace troupe::learners
