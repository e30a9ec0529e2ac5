// The exchange of processes on one host: a memory region that all of them map, where each rank has
// a slot that it alone writes. Torch-free.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "learners/collectives/exchange.hpp"

namespace troupe::learners {

// An anonymous file in memory, which the kernel frees with its last user, however that one dies.
class SharedRegion {
 public:
  // For `ranks` processes (1 to 256) that move up to `slot_bytes` (a multiple of 4096) at a time.
  static Result<std::shared_ptr<SharedRegion>> create(int ranks,
                                                      std::size_t slot_bytes = 256 << 10);
  // What another process of the same user made; `handle` is its handle(), and the maker is alive.
  // The memory is checked before it is believed.
  static Result<std::shared_ptr<SharedRegion>> open(const std::string& handle);

  ~SharedRegion();
  SharedRegion(const SharedRegion&) = delete;
  SharedRegion& operator=(const SharedRegion&) = delete;

  std::string handle() const;  // a path below /proc
  int ranks() const;
  std::size_t slot_bytes() const;
  void* memory() const { return memory_; }

 private:
  SharedRegion(int file, void* memory, std::size_t bytes)
      : file_(file), memory_(memory), bytes_(bytes) {}
  int file_;
  void* memory_;
  std::size_t bytes_;
};

// Reductions add in the order of the ranks. A rank that waits spins for microseconds, then sleeps
// on a futex and looks every 20 ms whether who it waits for still lives (pidfd); ranks may also be
// threads. Every rank of a region is made once. kInvalidArgument: no such rank.
Result<std::unique_ptr<Exchange>> make_shared_memory_exchange(std::shared_ptr<SharedRegion> region,
                                                              int rank,
                                                              std::chrono::milliseconds timeout);

}  // namespace troupe::learners
