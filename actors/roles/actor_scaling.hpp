// How many actors a run should have, judged by who waits for whom: learners that wait for samples
// want more, actors that wait for leave to insert are too many. Pure: time is a parameter. One
// owner.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace troupe::actors {

struct ActorScalingOptions {
  std::int64_t min = 1, max = 64;
  // Shares of the time between two looks.
  double much = 0.3, little = 0.1;
  std::chrono::milliseconds hold{10000};    // it must have been so for so long
  std::chrono::milliseconds settle{15000};  // after a change nothing is judged for so long
  // A growth must have brought this much more steps a second, or it is taken back and none is tried
  // for a while.
  double gain = 0.05;
  std::chrono::milliseconds rest{300000};
};

// What is known of the run; times and steps only grow.
struct ActorLoad {
  std::int64_t actors = 0;
  double insert_blocked_ms = 0;  // of all actors together, waiting for leave to insert
  double sample_blocked_ms = 0;  // of the learner that counts, waiting for samples
  double steps = 0;              // of all actors together
};

class ActorScaling {
 public:
  using Time = std::chrono::steady_clock::time_point;
  struct Decision {
    std::int64_t actors = 0;
    std::string why;  // a sentence with the numbers
  };

  ActorScaling(ActorScalingOptions options, Time now) : options_(options), judged_from_(now) {}

  // Call it about once a second. A counter that falls (a node was replaced) only restarts the look.
  std::optional<Decision> look(const ActorLoad& load, Time now);

 private:
  enum class Wish { kStay, kMore, kFewer };
  std::optional<Decision> judge(const ActorLoad& load, Time now);
  Decision change(std::int64_t actors, std::string why, Time now);
  void restart(const ActorLoad& load, Time now);

  const ActorScalingOptions options_;
  Time judged_from_;                 // before it nothing is judged
  std::optional<ActorLoad> before_;  // when the present wish began
  Time since_{};
  Wish wish_ = Wish::kStay;
  ActorLoad last_;
  Time last_at_{};
  std::optional<double> rate_before_growth_;  // steps a second
  std::int64_t actors_before_growth_ = 0;
  std::optional<Time> no_growth_until_;
};

}  // namespace troupe::actors
