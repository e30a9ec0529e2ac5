#include "learners/kernels/team.hpp"

#include <cassert>

namespace troupe::learners::kernels {
namespace {

// Returns once `value` differs from `old`. Spins as long as a phase of ordinary imbalance lasts,
// then sleeps: on a machine with fewer free cores than members the others need this one's.
void wait_for_change(const std::atomic<std::uint32_t>& value, std::uint32_t old) {
  for (int spin = 0; spin < 20000; ++spin) {
    if (value.load(std::memory_order_acquire) != old) return;
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }
  value.wait(old, std::memory_order_acquire);
}

}  // namespace

Team::Team(int size) : size_(size) {
  assert(size >= 1);
  for (int index = 1; index < size; ++index) helpers_.emplace_back([this, index] { help(index); });
}

Team::~Team() {
  stop_.store(true, std::memory_order_relaxed);
  started_.fetch_add(1, std::memory_order_release);
  started_.notify_all();
  for (std::thread& helper : helpers_) helper.join();
}

void Team::run(const std::function<void(int)>& work) {
  if (size_ == 1) return work(0);
  work_ = &work;
  started_.fetch_add(1, std::memory_order_release);
  started_.notify_all();
  work(0);
  meet();
}

void Team::meet() {
  if (size_ == 1) return;
  const std::uint32_t meeting = meetings_.load(std::memory_order_acquire);
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == static_cast<std::uint32_t>(size_)) {
    arrived_.store(0, std::memory_order_relaxed);
    meetings_.fetch_add(1, std::memory_order_release);
    meetings_.notify_all();
  } else {
    wait_for_change(meetings_, meeting);
  }
}

void Team::help(int index) {
  for (std::uint32_t seen = 0;; ++seen) {
    wait_for_change(started_, seen);
    if (stop_.load(std::memory_order_relaxed)) return;
    (*work_)(index);
    meet();
  }
}

}  // namespace troupe::learners::kernels
