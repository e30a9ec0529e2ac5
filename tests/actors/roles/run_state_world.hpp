// A world around a RunState for its tests: a clock of its own, and nodes that behave unless told
// not to.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "actors/roles/run_state.hpp"

namespace troupe::actors {

using std::chrono::milliseconds;
using std::chrono::seconds;

// A run state whose actions are carried out at once by a well-behaved world, unless a test
// interferes.
class World {
 public:
  explicit World(RunOptions options) : options_(std::move(options)) { begin(RunCounters{}); }

  void begin(RunCounters counters) {
    const ScaledCounts scaled = counters.scaled;
    run_.emplace(options_, plan_topology(options_, scaled), std::move(counters), now_);
    take();
  }
  RunState& run() { return *run_; }
  RunState::Time now() const { return now_; }

  // All started nodes join and serve; learners restore `inserted` steps and `version`.
  void serve_all(std::uint64_t inserted = 0, std::uint64_t version = 0) {
    for (const auto& [node, incarnation] : std::map(incarnations_)) serve(node, inserted, version);
  }
  void serve(const std::string& node, std::uint64_t inserted = 0, std::uint64_t version = 0) {
    const bool learner = node.starts_with("learner");
    EXPECT_TRUE(run_->node_joined(node, incarnations_[node], now_));
    run_->role_ready(node, incarnations_[node], 0,
                     learner ? std::vector<std::uint64_t>{inserted} : std::vector<std::uint64_t>{},
                     version, now_);
    take();
  }
  void end(const std::string& node, const std::string& reason, bool permanent = false) {
    run_->node_ended(node, incarnations_[node], reason, permanent, now_);
    take();
  }
  // Passes time in ticks of 100 ms; answers every ping except of the nodes in `silent`.
  void pass(milliseconds time) {
    for (milliseconds passed{0}; passed < time; passed += milliseconds{100}) {
      now_ += milliseconds{100};
      run_->tick(now_);
      take();
    }
  }
  template <class T>
  std::vector<T> all() const {
    std::vector<T> found;
    for (const Action& action : log_)
      if (const T* hit = std::get_if<T>(&action)) found.push_back(*hit);
    return found;
  }
  template <class T>
  int count() const {
    return static_cast<int>(all<T>().size());
  }
  std::vector<std::string> told(const std::string& kind) const {
    std::vector<std::string> texts;
    for (const Tell& line : all<Tell>())
      if (line.kind == kind) texts.push_back(line.text);
    return texts;
  }
  void report(std::uint64_t inserted, std::uint64_t version) {
    run_->shard_reported(0, {inserted, inserted, 0});
    run_->learner_reported(version);
  }
  std::uint32_t incarnation(const std::string& node) { return incarnations_[node]; }

  std::set<std::string> silent;

 private:
  void take() {
    for (const Action& action : run_->take_actions()) {
      log_.push_back(action);
      if (const auto* start = std::get_if<StartNode>(&action))
        incarnations_[start->node] = start->incarnation;
      if (const auto* ping = std::get_if<PingNode>(&action); ping && !silent.contains(ping->node))
        run_->pong(ping->node, incarnations_[ping->node], ping->number, 0, "", now_);
    }
  }

  RunOptions options_;
  RunState::Time now_{seconds{1000}};
  std::optional<RunState> run_;
  std::map<std::string, std::uint32_t> incarnations_;
  std::vector<Action> log_;
};

inline RunOptions options() {
  RunOptions options;
  options.environment.name = "probe/const";
  options.actors.count = 2;
  options.evaluation.every = 1000;
  options.checkpoint.every = seconds{60};
  options.stop.actor_steps = 5000;
  return options;
}

}  // namespace troupe::actors
