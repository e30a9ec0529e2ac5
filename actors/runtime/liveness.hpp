// Is a node alive, judged by our own pings. A pure class: the owner passes the time and sends the
// pings. Not thread-safe; one per node.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>

namespace troupe::actors {

struct LivenessOptions {
  std::chrono::milliseconds interval{1000};
  int silent_missed = 3;  // so many unanswered pings in a row: shown as silent
  int lost_missed = 8;    // so many: lost, its roles are given away

  // Lost after `silence` without an answer, silent after three intervals but never later than lost.
  static LivenessOptions lost_after(std::chrono::milliseconds silence) {
    LivenessOptions options;
    const auto pings =
        (silence + options.interval - std::chrono::milliseconds(1)) / options.interval;
    options.lost_missed = std::max(1, static_cast<int>(pings));
    options.silent_missed = std::min(options.silent_missed, options.lost_missed);
    return options;
  }
};

enum class Health { kAlive, kSilent, kLost };

// Counts pings rather than time: when the observer itself was frozen or its clock jumped, one ping
// was missed, not a minute of them, so nobody is declared lost for the observer's own sleep.
class Liveness {
 public:
  using Time = std::chrono::steady_clock::time_point;

  Liveness(LivenessOptions options, Time now) : options_(options), next_ping_(now) {}

  // The number to put into a ping that is to be sent now; nullopt when none is due. Call it at
  // least once per interval.
  std::optional<std::uint64_t> ping_due(Time now) {
    if (now < next_ping_) return std::nullopt;
    if (last_sent_ > last_answered_) ++missed_;
    next_ping_ = now + options_.interval;
    sent_at_ = now;
    return ++last_sent_;
  }

  // An answer arrived. Late ones count as signs of life too; numbers never sent are ignored.
  void pong(std::uint64_t number, Time now) {
    if (number <= last_answered_ || number > last_sent_) return;
    if (number == last_sent_) round_trip_ = now - sent_at_;
    last_answered_ = number;
    missed_ = 0;
  }

  Health health() const {
    if (missed_ >= options_.lost_missed) return Health::kLost;
    return missed_ >= options_.silent_missed ? Health::kSilent : Health::kAlive;
  }

  int missed() const { return missed_; }
  // Of the newest ping that was answered before the next was sent; nullopt before that.
  std::optional<std::chrono::nanoseconds> round_trip() const { return round_trip_; }

 private:
  LivenessOptions options_;
  Time next_ping_;
  Time sent_at_{};
  std::uint64_t last_sent_ = 0;
  std::uint64_t last_answered_ = 0;
  int missed_ = 0;
  std::optional<std::chrono::nanoseconds> round_trip_;
};

}  // namespace troupe::actors
