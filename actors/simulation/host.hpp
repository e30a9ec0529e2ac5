// A simulated machine: threads that have work share its cores evenly, as a fair scheduler lets
// them. One owner.
#pragma once

#include <cstdint>
#include <vector>

#include "actors/simulation/engine.hpp"

namespace troupe::actors::simulation {

class Host {
 public:
  // `full_speed`: how fast each core is while all are busy, beside 1 for one that is busy alone
  // (shared caches, clock rates, hyper-threads); in between it falls evenly.
  Host(Engine& engine, int cores, double full_speed);

  // A thread computes for so many seconds of a core that is busy alone, then `done` happens. Each
  // thread has one such piece of work at a time. O(log threads).
  void run(double seconds, Engine::Action done);
  // Cores that are taken all the time by what is not simulated one by one.
  void add_background(double cores) { background_ += cores; }

  int cores() const { return cores_; }
  // Core seconds so far, the background's included.
  double used();

 private:
  struct Work {
    double until;  // of progress_
    std::uint64_t order;
    Engine::Action done;
  };
  static bool later(const Work& a, const Work& b) {
    return a.until != b.until ? a.until > b.until : a.order > b.order;
  }
  double available() const;
  double rate() const;  // of each thread's progress
  void advance();
  void schedule();
  void finish();

  Engine& engine_;
  const int cores_;
  const double full_speed_;
  double background_ = 0;
  std::vector<Work> running_;  // a heap
  double progress_ = 0;        // seconds that each thread which was there all along has computed
  double used_ = 0;
  double at_ = 0;  // when both were true
  std::uint64_t order_ = 0, generation_ = 0;
};

}  // namespace troupe::actors::simulation
