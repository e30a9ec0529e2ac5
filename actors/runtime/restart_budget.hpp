// How often one node may be restarted, and how soon. A pure class: the owner passes the time. Not
// thread-safe; one per node.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

namespace troupe::actors {

struct RestartOptions {
  std::int64_t restarts = 10;  // within the window; 0: none
  std::chrono::milliseconds window{600000};
  std::chrono::milliseconds first_delay{200};  // doubles with every restart still in the window
  std::chrono::milliseconds longest_delay{10000};
};

class RestartBudget {
 public:
  using Time = std::chrono::steady_clock::time_point;

  explicit RestartBudget(RestartOptions options) : options_(options) {}

  // The node died at `now`: when to start it again, or nullopt when the budget is used up.
  std::optional<Time> next_restart(Time now) {
    forget_before(now - options_.window);
    if (used() >= options_.restarts) return std::nullopt;
    const std::chrono::milliseconds delay = delay_after(restarts_.size());
    restarts_.push_back(now);
    return now + delay;
  }

  // Restarts that count at `now`.
  std::int64_t used(Time now) const {
    const Time start = now - options_.window;
    return std::count_if(restarts_.begin(), restarts_.end(),
                         [&](Time restart) { return restart > start; });
  }
  std::int64_t allowed() const { return options_.restarts; }

 private:
  std::int64_t used() const { return static_cast<std::int64_t>(restarts_.size()); }

  void forget_before(Time start) {
    while (!restarts_.empty() && restarts_.front() <= start) restarts_.pop_front();
  }

  std::chrono::milliseconds delay_after(std::size_t restarts) const {
    std::chrono::milliseconds delay = std::min(options_.first_delay, options_.longest_delay);
    for (std::size_t i = 0; i < restarts && delay < options_.longest_delay; ++i)
      delay = std::min(2 * delay, options_.longest_delay);
    return delay;
  }

  RestartOptions options_;
  std::deque<Time> restarts_;
};

}  // namespace troupe::actors
