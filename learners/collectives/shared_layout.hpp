// What lies in a SharedRegion, and the futex on its words. Seen by shared_memory.cpp and
// shared_exchange.cpp only. Every word that two processes touch is atomic.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>

namespace troupe::learners::shared {

inline constexpr std::uint64_t kMagic = 0x3130'676e'6168'6354ULL;
inline constexpr int kMaxRanks = 256;

static_assert(std::atomic<std::uint32_t>::is_always_lock_free);

struct Header {
  std::uint64_t magic, ranks, slot_bytes;
  // The first failure: 0 none, 1 being written, 2 readable.
  alignas(64) std::atomic<std::uint32_t> failure;
  char reason[1020];
};

// One per rank, on a cache line pair of its own: adjacent lines are fetched together.
struct alignas(128) Control {
  std::atomic<std::uint32_t> arrived;  // barriers that the rank has come to; the futex
  std::atomic<std::uint32_t> sleepers;
  std::atomic<std::uint32_t> process;  // 0 until the rank is there
};

// Header, one Control per rank, then per rank two slots.
inline constexpr std::size_t kPage = 4096;
inline std::size_t data_offset(std::size_t ranks) {
  return (sizeof(Header) + 128 + ranks * sizeof(Control) + kPage - 1) / kPage * kPage;
}
inline std::size_t region_bytes(std::size_t ranks, std::size_t slot_bytes) {
  return data_offset(ranks) + 2 * ranks * slot_bytes;
}
inline Header& header_of(void* memory) { return *static_cast<Header*>(memory); }
inline Control& control_of(void* memory, int rank) {
  constexpr std::size_t kStart = (sizeof(Header) + 127) / 128 * 128;
  return reinterpret_cast<Control*>(static_cast<std::uint8_t*>(memory) + kStart)[rank];
}

inline void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t value,
                       std::chrono::milliseconds most) {
  const timespec time{most.count() / 1000, most.count() % 1000 * 1'000'000};
  ::syscall(SYS_futex, &word, FUTEX_WAIT, value, &time, nullptr, 0);
}
inline void futex_wake(std::atomic<std::uint32_t>& word) {
  ::syscall(SYS_futex, &word, FUTEX_WAKE, 1 << 30, nullptr, nullptr, 0);
}

// A descriptor that is readable once the process has died. Not glibc's pidfd_open: its header lacks
// the C linkage in 2.36.
inline int open_process(pid_t process) {
  return static_cast<int>(::syscall(SYS_pidfd_open, process, 0));
}

}  // namespace troupe::learners::shared
