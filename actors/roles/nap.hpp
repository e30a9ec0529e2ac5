// The pause between two looks at several channels, of which none can be waited on for all: short
// while something happens, so that an exchange of messages is not slowed down by it, longer once
// nothing did for a while. One owner.
#pragma once

#include <chrono>
#include <thread>

namespace troupe::actors {

class Nap {
 public:
  // Something came or went.
  void disturb() { last_ = Clock::now(); }
  void take() const {
    const bool lively = Clock::now() - last_ < kLively;
    std::this_thread::sleep_for(lively ? kShort : kLong);
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::microseconds kShort{100}, kLong{1000};
  static constexpr std::chrono::milliseconds kLively{10};
  Clock::time_point last_{};
};

}  // namespace troupe::actors
