// evaluations.npz: the history of evaluations in the layout of stable-baselines3's EvalCallback, so
// that its users' plotting code reads it: timesteps int64 [n], results float64 [n, episodes],
// ep_lengths int64 [n, episodes]. Replaced as a whole after every evaluation. One owner, one
// thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "actors/telemetry/protocol.hpp"
#include "envs/spec/result.hpp"

namespace troupe::actors::telemetry {

class EvaluationLog {
 public:
  struct Entry {
    std::int64_t actor_steps = 0;
    Evaluation evaluation{};
  };

  // Keeps the evaluations up to `restored_actor_steps`. kCorrupt: not such a file; it is left as it
  // is.
  static Result<EvaluationLog> open(std::filesystem::path path, std::int64_t restored_actor_steps);

  // In memory first, so that nothing is lost when the disk refuses: the next save holds it. One at
  // the same step replaces its predecessor. Rows of fewer episodes than the widest end in NaN and
  // length 0.
  void add(std::int64_t actor_steps, Evaluation evaluation);
  bool needs_save() const { return needs_save_; }
  Result<void> save();

  const std::vector<Entry>& entries() const { return entries_; }  // by growing actor_steps

 private:
  explicit EvaluationLog(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;
  std::vector<Entry> entries_;
  bool needs_save_ = false;
};

}  // namespace troupe::actors::telemetry
