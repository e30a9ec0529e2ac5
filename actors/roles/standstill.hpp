// Notices that a run makes no updates and says why, from what its nodes report. Pure: time is a
// parameter. One owner.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace troupe::actors {

// The run as the coordinator sees it.
struct StandstillView {
  struct Node {
    std::string name, role;
    std::string state;          // RunState::state_of
    std::string waiting_on;     // as it last reported; empty: on nothing
    std::uint64_t busy_ms = 0;  // inside one call, and which
    std::string busy_with;
  };
  std::vector<Node> nodes;
  std::string stopping;  // why the run ends; empty while it runs
  std::uint64_t version = 0;
  std::uint64_t actor_steps = 0;
  std::string restoring;   // name of the checkpoint that starting nodes read; empty: none
  std::string disk_error;  // of the last checkpoint, if it was not written
};

// One sentence or a few: the first of these that holds, and what bears on it. The run stops; the
// learner, a parameter server or a shard is starting, restoring, restarting or silent; no
// environment or data actor serves; the replay has not reached min_size; samples wait for inserts,
// and what those wait for; a batch waits for a shard; the learner is inside one call.
std::string explain_standstill(const StandstillView& view);

class StandstillWatch {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // Speaks after `after` without an update, and again after twice that time, four times, ...
  StandstillWatch(std::chrono::milliseconds after, Time now)
      : after_(after), wait_(after), since_(now) {}

  // What to say now; nullopt: nothing. Once updates go on after a standstill it says so. A version
  // that falls is a learner that was started again, not progress.
  std::optional<std::string> look(const StandstillView& view, Time now);

 private:
  std::chrono::milliseconds after_, wait_;
  Time since_;
  std::uint64_t version_ = 0;
  bool said_ = false;
};

}  // namespace troupe::actors
