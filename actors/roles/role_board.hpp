// What a role shows of itself: counters, gauges, what it waits for, and the call it is inside.
// Written by the role's thread, read by its node's actor at any time.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

namespace troupe::actors {

class RoleBoard {
 public:
  using Clock = std::chrono::steady_clock;
  struct Snapshot {
    std::map<std::string, double> counters;  // monotone within an incarnation
    std::map<std::string, double> gauges;
    std::string waiting_on;  // empty: nothing
  };

  void publish(Snapshot snapshot) {
    const std::lock_guard lock(mutex_);
    snapshot_ = std::move(snapshot);
  }
  Snapshot read() const {
    const std::lock_guard lock(mutex_);
    return snapshot_;
  }

  // Brackets a call that may hang. `what` must outlive the bracket (a literal), `detail` is a
  // number to show with it (an environment, a version).
  void enter(const char* what, std::uint64_t detail = 0) {
    detail_.store(detail, std::memory_order_relaxed);
    what_.store(what, std::memory_order_relaxed);
    since_.store(Clock::now().time_since_epoch().count(), std::memory_order_release);
  }
  void leave() { since_.store(0, std::memory_order_release); }

  // Milliseconds inside the current call, 0 when outside, and its description.
  std::uint64_t busy_ms(std::string& what) const {
    const auto since = since_.load(std::memory_order_acquire);
    if (since == 0) return 0;
    const char* name = what_.load(std::memory_order_relaxed);
    what = std::string(name) + " " + std::to_string(detail_.load(std::memory_order_relaxed));
    const auto busy = Clock::now().time_since_epoch() - Clock::duration(since);
    return static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::milliseconds>(busy).count());
  }

 private:
  mutable std::mutex mutex_;
  Snapshot snapshot_;
  std::atomic<Clock::rep> since_{0};
  std::atomic<const char*> what_{""};
  std::atomic<std::uint64_t> detail_{0};
};

// {"counters": {...}, "gauges": {...}, "waiting_on": "..."}; NaN and infinities, which JSON lacks,
// as the strings "nan", "inf" and "-inf".
std::string to_json(const RoleBoard::Snapshot& snapshot);

// Time lost under a name, in milliseconds: one stopwatch per reason.
class BlockedTime {
 public:
  using Clock = std::chrono::steady_clock;
  // From now on blocked on `reason` (empty: not blocked).
  void set(const std::string& reason) {
    const auto now = Clock::now();
    if (!reason_.empty()) total_[reason_] += now - since_;
    reason_ = reason;
    since_ = now;
  }
  const std::string& reason() const { return reason_; }
  // Adds "<reason>_blocked_ms" to `counters`, the current wait included.
  void add_to(std::map<std::string, double>& counters) {
    set(std::string(reason_));
    for (const auto& [reason, time] : total_)
      counters[reason + "_blocked_ms"] = std::chrono::duration<double, std::milli>(time).count();
  }

 private:
  std::string reason_;
  Clock::time_point since_{};
  std::map<std::string, Clock::duration> total_;
};

}  // namespace troupe::actors
