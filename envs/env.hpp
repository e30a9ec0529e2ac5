// The seam every environment implements. One Env belongs to one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "envs/spec/result.hpp"
#include "envs/spec/spec.hpp"

namespace troupe::envs {

// What one control step returned. Termination: the task ended, the value of what follows is zero.
// Truncation: the time limit cut it, the value of the last observation still counts. Both may be
// set.
struct Transition {
  double reward = 0;
  bool terminated = false;
  bool truncated = false;
};

class Env {
 public:
  virtual ~Env() = default;

  virtual const EnvSpec& spec() const = 0;

  // Starts an episode drawn from `seed` alone: equal seeds give equal episodes, 0 is a seed like
  // any.
  virtual Result<void> reset(std::uint64_t seed) = 0;

  // One control step. `action` has spec().action.elements() doubles within the bounds (checked by
  // the callers' ActionMap, not here). An error (kInvalidEpisode, kNotFinite) means that the state
  // cannot be trusted: the episode is to be dropped and the next call must be reset.
  virtual Result<Transition> step(std::span<const double> action) = 0;

  // Writes the f32 columns of the current observation, concatenated in the spec's order, as
  // doubles: spec().observation_size() values.
  virtual void observe(std::span<double> values) const = 0;

  // Writes u8 column `index` (pixels) of the current observation. Only called for u8 columns.
  virtual void observe_bytes(std::size_t /*index*/, std::span<std::uint8_t> /*bytes*/) const {}

  // Everything that decides the rest of the episode (integration state, episode step, RNG): after
  // load_state on an Env of the same spec, equal actions give bitwise equal transitions. kCorrupt
  // when the bytes do not fit.
  virtual void save_state(std::vector<std::uint8_t>& out) const = 0;
  virtual Result<void> load_state(std::span<const std::uint8_t> bytes) = 0;
};

}  // namespace troupe::envs
