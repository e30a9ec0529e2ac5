// Steps, faults and automatic resets; saving and loading is in vector_env_state.cpp.
#include "envs/vector_env.hpp"

#include <cmath>
#include <exception>
#include <limits>
#include <utility>

#include "envs/spec/random.hpp"

namespace troupe::envs {
namespace {

std::string size_message(const char* what, std::size_t got, std::size_t wanted) {
  return std::string("the ") + what + " buffer of a vector environment holds " +
         std::to_string(got) + " floats, not " + std::to_string(wanted);
}

// NaN, infinite, or too large for the float32 that leaves this file.
bool fits_float(double value) { return std::abs(value) <= std::numeric_limits<float>::max(); }

}  // namespace

Result<std::unique_ptr<VectorEnv>> VectorEnv::make(std::string_view name, const EnvConfig& config,
                                                   std::int64_t count, std::uint64_t seed,
                                                   std::uint64_t worker) {
  if (count < 1)
    return fail(ErrorCode::kInvalidArgument, "a vector environment of '" + std::string(name) +
                                                 "' needs at least one environment, not " +
                                                 std::to_string(count));
  std::vector<std::unique_ptr<Env>> envs;
  for (std::int64_t i = 0; i < count; ++i) {
    Result<std::unique_ptr<Env>> env = make_env(name, config);
    if (!env) return tl::unexpected(std::move(env.error()));
    envs.push_back(std::move(*env));
  }
  return make(std::move(envs), seed, worker);
}

Result<std::unique_ptr<VectorEnv>> VectorEnv::make(std::vector<std::unique_ptr<Env>> envs,
                                                   std::uint64_t seed, std::uint64_t worker) {
  if (envs.empty())
    return fail(ErrorCode::kInvalidArgument, "a vector environment needs at least one environment");
  const EnvSpec& spec = envs.front()->spec();
  for (const auto& env : envs)
    if (env->spec() != spec)
      return fail(ErrorCode::kInvalidArgument, "a vector environment cannot mix '" + spec.name +
                                                   "' and '" + env->spec().name + "'");
  for (const Column& column : spec.observations)
    if (column.dtype == DType::kU8)
      return fail(ErrorCode::kInvalidArgument, "environment '" + spec.name +
                                                   "' observes pixels ('" + column.name +
                                                   "'), which a vector environment does not batch");
  Result<ActionMap> map = ActionMap::make(spec.action, spec.name);
  if (!map) return tl::unexpected(std::move(map.error()));
  return std::unique_ptr<VectorEnv>(new VectorEnv(std::move(envs), std::move(*map), seed, worker));
}

VectorEnv::VectorEnv(std::vector<std::unique_ptr<Env>> envs, ActionMap action_map,
                     std::uint64_t seed, std::uint64_t worker)
    : envs_(std::move(envs)),
      action_map_(std::move(action_map)),
      observation_size_(envs_.front()->spec().observation_size()),
      episodes_(envs_.size()),
      results_(envs_.size()),
      observations_(envs_.size() * static_cast<std::size_t>(observation_size_)),
      final_observations_(observations_.size()),
      applied_(envs_.size() * static_cast<std::size_t>(action_map_.size())),
      action_(static_cast<std::size_t>(action_map_.size())) {
  for (std::size_t i = 0; i < envs_.size(); ++i)
    episodes_[i].stream = stream_seed(seed, "environment", worker, i);
}

Result<void> VectorEnv::reset(std::span<float> observations) {
  if (Result<void> fits = check_buffer(observations.size()); !fits) return fits;
  for (std::int64_t i = 0; i < count(); ++i)
    if (Result<void> started = start_episode(i, row(observations, i)); !started) return started;
  started_ = true;
  return {};
}

Result<std::span<const StepResult>> VectorEnv::step(std::span<const float> actions,
                                                    std::span<float> observations) {
  if (!started_)
    return fail(ErrorCode::kInvalidArgument, "a vector environment is stepped before its reset");
  if (Result<void> fits = check_buffer(observations.size()); !fits)
    return tl::unexpected(std::move(fits.error()));
  if (actions.size() != applied_.size())
    return fail(ErrorCode::kInvalidArgument,
                size_message("action", actions.size(), applied_.size()));
  for (std::int64_t i = 0; i < count(); ++i) {
    record(i, step_one(i, actions), row(observations, i));
    if (!results_[static_cast<std::size_t>(i)].ended()) continue;
    if (Result<void> started = start_episode(i, row(observations, i)); !started) {
      started_ = false;
      return tl::unexpected(std::move(started.error()));
    }
  }
  return std::span<const StepResult>(results_);
}

// The step of one environment with its action checked first.
VectorEnv::Outcome VectorEnv::step_one(std::int64_t index, std::span<const float> actions) {
  const std::size_t size = action_.size(), first = static_cast<std::size_t>(index) * size;
  const std::span<float> stored = std::span<float>(applied_).subspan(first, size);
  if (Result<void> clipped = action_map_.clip(actions.subspan(first, size), stored); !clipped) {
    return {.fault = Fault::kAction, .reason = std::move(clipped.error().message)};
  }
  return advance(index, stored);
}

VectorEnv::Outcome VectorEnv::advance(std::int64_t index, std::span<const float> stored) {
  action_map_.to_environment(stored, action_);
  try {
    Result<Transition> transition = envs_[static_cast<std::size_t>(index)]->step(action_);
    if (!transition) {
      const bool number = transition.error().code == ErrorCode::kNotFinite;
      return {.fault = number ? Fault::kNotFinite : Fault::kEnv,
              .reason = std::move(transition.error().message)};
    }
    if (!fits_float(transition->reward))
      return {.fault = Fault::kNotFinite,
              .reason = "its reward is " + std::to_string(transition->reward)};
    if (!read_observation(index))
      return {.fault = Fault::kNotFinite, .reason = "its observation is not finite"};
    return {.transition = *transition};
  } catch (const std::exception& exception) {
    return {.fault = Fault::kException, .reason = std::string("it threw: ") + exception.what()};
  } catch (...) {
    return {.fault = Fault::kException, .reason = "it threw something that is no std::exception"};
  }
}

// Fills the step's result and either the caller's row or, when the episode is over, the final
// observation.
void VectorEnv::record(std::int64_t index, const Outcome& outcome, std::span<float> observation) {
  StepResult& result = results_[static_cast<std::size_t>(index)];
  Episode& episode = episodes_[static_cast<std::size_t>(index)];
  result.invalid = outcome.fault != Fault::kNone;
  result.reward = outcome.transition.reward;
  result.terminated = outcome.transition.terminated;
  result.truncated = outcome.transition.truncated;
  result.reason.clear();
  if (result.invalid) {
    count_fault(outcome.fault);
    result.reason = "environment " + std::to_string(index) + " ('" + spec().name + "'), step " +
                    std::to_string(episode.steps + 1) + " of its episode " +
                    std::to_string(episode.number) + ": " + outcome.reason;
  } else {
    ++counters_.steps;
    ++episode.steps;
    episode.total += result.reward;
    counters_.episodes += result.ended();
    write_observation(
        index, result.ended() ? row(std::span<float>(final_observations_), index) : observation);
  }
  result.episode_steps = episode.steps;
  result.episode_return = episode.total;
}

void VectorEnv::count_fault(Fault fault) {
  ++counters_.invalid_episodes;
  counters_.nan_transitions += fault == Fault::kNotFinite;
  counters_.nan_actions += fault == Fault::kAction;
  counters_.env_errors += fault == Fault::kEnv;
  counters_.exceptions += fault == Fault::kException;
}

Result<void> VectorEnv::start_episode(std::int64_t index, std::span<float> observation) {
  Episode& episode = episodes_[static_cast<std::size_t>(index)];
  episode.steps = 0;
  episode.total = 0;
  Result<void> done;
  for (int attempt = 0; attempt < kMaxResets; ++attempt) {
    episode.seed = stream_seed(episode.stream, "episode", episode.number++);
    done = try_reset(index, episode.seed);
    if (!done) continue;
    write_observation(index, observation);
    return done;
  }
  return fail(done.error().code, "environment " + std::to_string(index) + " ('" + spec().name +
                                     "') cannot start an episode (" + std::to_string(kMaxResets) +
                                     " attempts): " + done.error().message);
}

Result<void> VectorEnv::try_reset(std::int64_t index, std::uint64_t seed) {
  try {
    Result<void> done = envs_[static_cast<std::size_t>(index)]->reset(seed);
    if (done && !read_observation(index))
      return fail(ErrorCode::kNotFinite, "its first observation is not finite");
    return done;
  } catch (const std::exception& exception) {
    return fail(ErrorCode::kInternal, std::string("its reset threw: ") + exception.what());
  } catch (...) {
    return fail(ErrorCode::kInternal, "its reset threw something that is no std::exception");
  }
}

// Into observations_; false when an element does not fit a float.
bool VectorEnv::read_observation(std::int64_t index) {
  const std::span<double> values = row(std::span<double>(observations_), index);
  envs_[static_cast<std::size_t>(index)]->observe(values);
  return all_finite(values);
}

bool VectorEnv::all_finite(std::span<const double> values) {
  bool finite = true;
  for (const double value : values) finite &= fits_float(value);
  return finite;
}

void VectorEnv::write_observation(std::int64_t index, std::span<float> out) const {
  const std::span<const double> values = observation(index);
  for (std::size_t i = 0; i < values.size(); ++i) out[i] = static_cast<float>(values[i]);
}

Result<void> VectorEnv::check_buffer(std::size_t size) const {
  if (size == observations_.size()) return {};
  return fail(ErrorCode::kInvalidArgument, size_message("observation", size, observations_.size()));
}

}  // namespace troupe::envs
