// The clock of a simulated run: actions at moments of simulated time, in the order of time and,
// where that is the same, in the order in which they were asked for. One owner; no thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <vector>

namespace troupe::actors::simulation {

class Engine {
 public:
  // The clock that the product's decisions take as a parameter.
  using Time = std::chrono::steady_clock::time_point;
  using Action = std::function<void()>;

  Time now() const { return now_; }
  double seconds() const { return std::chrono::duration<double>(now_ - kBegin).count(); }

  // O(log waiting actions). What is over in the past happens now.
  void after(double seconds, Action action);
  // Does all that is due by then; the clock stands there afterwards.
  void run_until(double seconds);
  std::uint64_t events() const { return events_; }

 private:
  struct Event {
    Time at;
    std::uint64_t order;
    Action action;
  };
  static bool later(const Event& a, const Event& b) {
    return a.at != b.at ? a.at > b.at : a.order > b.order;
  }
  // Not the clock's own zero, which some classes take for "never".
  static constexpr Time kBegin{std::chrono::hours(1)};

  std::vector<Event> events_waiting_;  // a heap
  Time now_ = kBegin;
  std::uint64_t order_ = 0, events_ = 0;
};

}  // namespace troupe::actors::simulation
