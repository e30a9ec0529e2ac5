// A link to one node as a state machine. It decides; its owner probes, connects and monitors,
// reports how that went, and asks tick() what is next. Pure: time is a parameter. Not thread-safe.
//
//   kBackingOff ──delay over──▶ kProbing ──answered──▶ kConnecting ──connected──▶ kRunning
//        ▲                         │ failed                 │ failed                 │ lost
//        └─────────────────────────┴────────────────────────┴────────────────────────┘
//   kGivenUp: reached from any of them when the link did not run for `grace`.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "envs/spec/random.hpp"

namespace troupe::actors {

struct LinkOptions {
  std::chrono::milliseconds first_delay{200};  // doubles with every failure, up to
  std::chrono::milliseconds longest_delay{5000};
  double jitter =
      0.5;  // a delay d becomes uniform in [(1 - jitter) d, d], so that peers spread out
  std::chrono::milliseconds probe_limit{8000};     // no answer to a probe: counts as failed
  std::chrono::milliseconds connect_limit{10000};  // same for a connect
  std::chrono::milliseconds grace{0};  // longest time without running; 0: tries for ever
};

class Link {
 public:
  using Time = std::chrono::steady_clock::time_point;
  enum class State { kBackingOff, kProbing, kConnecting, kRunning, kGivenUp };
  // What the owner is to do, once per return.
  enum class Action { kNothing, kProbe, kConnect, kGiveUp };

  // Starts at once: the first tick says kProbe.
  Link(LinkOptions options, Random random, Time now);

  // Call at least every few hundred milliseconds, and after every report. attempt() then belongs to
  // the action, and reports carry it back: those of earlier attempts are ignored.
  Action tick(Time now);

  // Reports. A late one (of an attempt that ran into its limit) returns false and changes nothing:
  // a connection made by it must be dropped.
  bool answered(std::uint64_t attempt, Time now);
  bool connected(std::uint64_t attempt, Time now);
  bool failed(std::uint64_t attempt, const std::string& reason, Time now);
  bool lost(std::uint64_t attempt, const std::string& reason, Time now);

  State state() const { return state_; }
  std::uint64_t attempt() const { return attempt_; }
  // Failures since it last ran, and why the last one was.
  int failures() const { return failures_; }
  const std::string& reason() const { return reason_; }
  // Times it ran and was lost.
  std::uint64_t losses() const { return losses_; }
  // When the next probe is due; meaningful in kBackingOff.
  Time next_attempt() const { return until_; }

 private:
  void back_off(const std::string& reason, Time now);

  LinkOptions options_;
  Random random_;
  State state_ = State::kBackingOff;
  Time until_;            // end of the current state's patience
  Time not_running_;      // since when
  bool connect_ = false;  // kConnect has not been handed out yet
  std::uint64_t attempt_ = 0;
  int failures_ = 0;
  std::uint64_t losses_ = 0;
  std::string reason_;
};

// "probing", "running", …, for status lines.
const char* name_of(Link::State state);

}  // namespace troupe::actors
