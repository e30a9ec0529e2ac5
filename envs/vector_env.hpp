// Several environments of one task, stepped together by one thread. Writes observations in place,
// resets finished episodes in the same call without losing their last observation, and keeps
// whatever an environment does wrong (NaN, errors, exceptions) out of the experience. A VectorEnv
// belongs to one thread at a time. Nothing is allocated per step, except the text of a fault.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "envs/action_map.hpp"
#include "envs/env.hpp"
#include "envs/registry.hpp"
#include "envs/spec/result.hpp"

namespace troupe::envs {

class StateReader;

// What one step of one environment gave. An episode is over when `ended()`: the row in
// `observations` is then the first observation of the next one, and the step's own last observation
// is VectorEnv::final_observation(i).
struct StepResult {
  double reward = 0;
  bool terminated = false;  // the task ended: what follows is worth zero
  bool truncated = false;   // the time limit cut it: bootstrap from final_observation
  // The episode cannot be trusted: drop this step, and what else of the episode is still yours to
  // drop. reward is 0, terminated and truncated are false, there is no final observation, and
  // `reason` names environment, step and fault.
  bool invalid = false;
  std::string reason;
  // Of the episode so far, this step included (an invalid one excluded).
  double episode_return = 0;
  std::int64_t episode_steps = 0;

  bool ended() const { return terminated || truncated || invalid; }
};

// Since the VectorEnv was made or its state loaded from.
struct VectorEnvCounters {
  std::int64_t steps = 0;             // valid control steps
  std::int64_t episodes = 0;          // finished valid episodes
  std::int64_t invalid_episodes = 0;  // dropped for any of the reasons below
  std::int64_t nan_transitions = 0;   // a reward or observation was NaN, infinite or beyond float32
  std::int64_t nan_actions = 0;  // the policy's action was NaN; the environment was not stepped
  std::int64_t env_errors = 0;   // the environment refused (kInvalidEpisode and others)
  std::int64_t exceptions = 0;   // the environment threw
  bool operator==(const VectorEnvCounters&) const = default;
};

class VectorEnv {
 public:
  // `count` environments, their random streams those of (seed, worker, index): equal arguments give
  // equal episodes, and neither another count nor another worker changes a stream. A worker that
  // restarts without its saved state repeats its episodes unless the caller changes `seed`. Errors:
  // those of make_env and ActionMap::make; kInvalidArgument for count < 1 or a task with pixel
  // columns.
  static Result<std::unique_ptr<VectorEnv>> make(std::string_view name, const EnvConfig& config,
                                                 std::int64_t count, std::uint64_t seed,
                                                 std::uint64_t worker = 0);
  // The same over environments made elsewhere, all of one spec (at least one).
  static Result<std::unique_ptr<VectorEnv>> make(std::vector<std::unique_ptr<Env>> envs,
                                                 std::uint64_t seed, std::uint64_t worker = 0);

  const EnvSpec& spec() const { return envs_.front()->spec(); }
  const ActionMap& action_map() const { return action_map_; }
  std::int64_t count() const { return static_cast<std::int64_t>(envs_.size()); }
  std::int64_t observation_size() const { return observation_size_; }
  std::int64_t action_size() const { return action_map_.size(); }
  const VectorEnvCounters& counters() const { return counters_; }

  // Starts a new episode everywhere; observations [count, observation_size] row by row. An error
  // means that an environment cannot start an episode at all (kMaxResets attempts failed).
  Result<void> reset(std::span<float> observations);

  // One control step of each. actions [count, action_size] in policy units, clipped to [-1, 1];
  // observations as in reset, only written. The results are valid until the next call. An error
  // means that the buffers have the wrong size (kInvalidArgument), reset was never called, or an
  // environment could not be reset.
  Result<std::span<const StepResult>> step(std::span<const float> actions,
                                           std::span<float> observations);

  // actions [count, action_size] of the last step as applied, in policy units: what replay stores.
  std::span<const float> applied_actions() const { return applied_; }
  // Last observation [observation_size] of the episode that ended in environment `index` in the
  // last step; meaningless when none ended there or it was invalid.
  std::span<const float> final_observation(std::int64_t index) const {
    return row(std::span<const float>(final_observations_), index);
  }
  // The observation last written for environment `index`, in double [observation_size].
  std::span<const double> observation(std::int64_t index) const {
    return row(std::span<const double>(observations_), index);
  }
  // What the current episode of environment `index` was reset with: Env::reset(seed) replays its
  // start.
  std::uint64_t episode_seed(std::int64_t index) const {
    return episodes_[static_cast<std::size_t>(index)].seed;
  }

  // Everything: environments, episode seeds, returns, current observations, counters. After
  // load_state on a VectorEnv of the same task and count, equal actions give bitwise equal results;
  // `observations`, when not empty, gets the current ones. kCorrupt leaves the environments in
  // need of a reset.
  std::vector<std::uint8_t> save_state() const;
  Result<void> load_state(std::span<const std::uint8_t> bytes, std::span<float> observations = {});

  // Attempts to start an episode before reset or step gives up with an error.
  static constexpr int kMaxResets = 10;

 private:
  struct Episode {
    std::uint64_t stream = 0;  // seed of the environment's stream of episode seeds
    std::uint64_t number = 0;  // of the next episode
    std::uint64_t seed = 0;    // of the current one
    std::int64_t steps = 0;
    double total = 0;
  };
  enum class Fault { kNone, kNotFinite, kAction, kEnv, kException };
  struct Outcome {
    Transition transition{};
    Fault fault = Fault::kNone;
    std::string reason{};
  };

  VectorEnv(std::vector<std::unique_ptr<Env>> envs, ActionMap action_map, std::uint64_t seed,
            std::uint64_t worker);
  template <class T>
  std::span<T> row(std::span<T> all, std::int64_t index) const {
    const auto size = static_cast<std::size_t>(observation_size_);
    return all.subspan(static_cast<std::size_t>(index) * size, size);
  }

  Outcome step_one(std::int64_t index, std::span<const float> actions);
  Outcome advance(std::int64_t index, std::span<const float> stored);
  void record(std::int64_t index, const Outcome& outcome, std::span<float> observation);
  void count_fault(Fault fault);
  Result<void> start_episode(std::int64_t index, std::span<float> observation);
  Result<void> try_reset(std::int64_t index, std::uint64_t seed);
  bool read_observation(std::int64_t index);
  void write_observation(std::int64_t index, std::span<float> out) const;
  Result<void> check_buffer(std::size_t size) const;
  Result<void> load_one(std::int64_t index, StateReader& reader, bool started);
  // Whether all fit a float32: neither NaN nor infinite nor beyond its range.
  static bool all_finite(std::span<const double> values);

  std::vector<std::unique_ptr<Env>> envs_;
  ActionMap action_map_;
  std::int64_t observation_size_;
  std::vector<Episode> episodes_;
  std::vector<StepResult> results_;
  std::vector<double> observations_;       // [count, observation_size]
  std::vector<float> final_observations_;  // [count, observation_size]
  std::vector<float> applied_;             // [count, action_size]
  std::vector<double> action_;             // [action_size]
  VectorEnvCounters counters_;
  bool started_ = false;
};

}  // namespace troupe::envs
