// Counts steps; the count is part of the saved state.
#include "envs/time_limit.hpp"

#include <utility>

#include "envs/state_bytes.hpp"

namespace troupe::envs {

TimeLimit::TimeLimit(std::unique_ptr<Env> env, std::int64_t steps)
    : env_(std::move(env)), spec_(env_->spec()) {
  spec_.episode_steps = steps;
}

Result<void> TimeLimit::reset(std::uint64_t seed) {
  episode_step_ = 0;
  return env_->reset(seed);
}

Result<Transition> TimeLimit::step(std::span<const double> action) {
  Result<Transition> transition = env_->step(action);
  if (transition && ++episode_step_ >= spec_.episode_steps) transition->truncated = true;
  return transition;
}

void TimeLimit::save_state(std::vector<std::uint8_t>& out) const {
  append(out, episode_step_);
  env_->save_state(out);
}

Result<void> TimeLimit::load_state(std::span<const std::uint8_t> bytes) {
  StateReader reader(bytes);
  std::int64_t step = 0;
  if (!reader.read(step) || step < 0 || step > spec_.episode_steps)
    return fail(ErrorCode::kCorrupt, "the saved state of environment '" + spec_.name +
                                         "' holds no episode step within its time limit");
  if (Result<void> loaded = env_->load_state(reader.rest()); !loaded) return loaded;
  episode_step_ = step;
  return {};
}

}  // namespace troupe::envs
