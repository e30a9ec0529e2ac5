// Records the episodes once, then times both loops over them in turns.
#include "envs/benchmark.hpp"

#include <ctime>

#include <algorithm>
#include <utility>
#include <vector>

#include "envs/dmc/suite_task.hpp"
#include "envs/registry.hpp"
#include "envs/spec/random.hpp"
#include "envs/time_limit.hpp"
#include "envs/vector_env.hpp"

namespace troupe::envs {
namespace {

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

Spread spread_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return {.min = values.front(), .median = values[values.size() / 2], .max = values.back()};
}

using State = std::vector<mjtNum>;

State state_of(const mujoco::Simulation& simulation) {
  State state(static_cast<std::size_t>(mj_stateSize(simulation.m(), mjSTATE_INTEGRATION)));
  mj_getState(simulation.m(), simulation.d(), state.data(), mjSTATE_INTEGRATION);
  return state;
}

// What makes one episode repeatable by MuJoCo alone.
struct Recording {
  std::int64_t first_step = 0;  // index into the actions
  std::uint64_t seed = 0;
  State drawn;                // before settling
  State start;                // what the episode starts from
  State end;                  // after its last step
  std::vector<double> ctrls;  // [steps, nu]
};

class Bench {
 public:
  static Result<Bench> make(const EnvBenchmarkOptions& options) {
    if (options.rounds < 5 || options.episodes < 1)
      return fail(ErrorCode::kInvalidArgument,
                  "the environment benchmark needs at least 5 rounds and 1 episode");
    Result<std::unique_ptr<Env>> env = make_env(options.task);
    if (!env) return tl::unexpected(std::move(env.error()));
    Result<std::unique_ptr<Env>> twin = make_env(options.task);
    if (!twin) return tl::unexpected(std::move(twin.error()));
    dmc::SuiteTask* task = suite_task(**env);
    if (task == nullptr)
      return fail(ErrorCode::kInvalidArgument,
                  "environment '" + options.task + "' has no physics to compare its speed with");
    std::vector<std::unique_ptr<Env>> envs;
    envs.push_back(std::move(*env));
    Result<std::unique_ptr<VectorEnv>> vector = VectorEnv::make(std::move(envs), options.seed);
    if (!vector) return tl::unexpected(std::move(vector.error()));
    Bench bench(options, task, std::move(*twin), std::move(*vector));
    if (Result<void> done = bench.record(); !done) return tl::unexpected(std::move(done.error()));
    return bench;
  }

  Result<EnvBenchmark> run() {
    std::vector<double> env_seconds, raw_seconds;
    for (int round = -1; round < options_.rounds; ++round) {  // round -1 warms up
      if (Result<void> done = vector_->load_state(begin_); !done)
        return tl::unexpected(std::move(done.error()));
      double env = 0, raw = 0;
      for (Recording& recording : recordings_) {
        if (Result<void> done = time_env(recording, env); !done)
          return tl::unexpected(std::move(done.error()));
        if (Result<void> done = time_raw(recording, raw); !done)
          return tl::unexpected(std::move(done.error()));
      }
      if (round < 0) continue;
      env_seconds.push_back(env);
      raw_seconds.push_back(raw);
    }
    return summary(env_seconds, raw_seconds);
  }

 private:
  Bench(const EnvBenchmarkOptions& options, dmc::SuiteTask* task, std::unique_ptr<Env> twin,
        std::unique_ptr<VectorEnv> vector)
      : options_(options),
        task_(task),
        twin_(std::move(twin)),
        vector_(std::move(vector)),
        simulation_(suite_task(*twin_)->simulation()),
        steps_(options.episodes * vector_->spec().episode_steps),
        observation_(static_cast<std::size_t>(vector_->observation_size())) {
    Random random(stream_seed(options.seed, "benchmark"));
    actions_.resize(static_cast<std::size_t>(steps_ * vector_->action_size()));
    for (float& action : actions_) action = static_cast<float>(random.uniform(-1, 1));
  }

  static dmc::SuiteTask* suite_task(Env& env) {
    auto* limited = dynamic_cast<TimeLimit*>(&env);
    return limited ? dynamic_cast<dmc::SuiteTask*>(&limited->inner()) : nullptr;
  }

  std::span<const float> action(std::int64_t step) const {
    const auto size = static_cast<std::size_t>(vector_->action_size());
    return std::span<const float>(actions_).subspan(static_cast<std::size_t>(step) * size, size);
  }

  // Plays all episodes once and keeps their first and last states and controls.
  Result<void> record() {
    if (Result<void> done = vector_->reset(observation_); !done) return done;
    begin_ = vector_->save_state();
    std::vector<double> ctrl(static_cast<std::size_t>(vector_->action_size()));
    for (std::int64_t step = 0; step < steps_; ++step) {
      if (step % vector_->spec().episode_steps == 0)
        if (Result<void> done = record_start(step); !done) return done;
      vector_->action_map().to_environment(action(step), ctrl);
      std::vector<double>& ctrls = recordings_.back().ctrls;
      ctrls.insert(ctrls.end(), ctrl.begin(), ctrl.end());
      Result<std::span<const StepResult>> results = vector_->step(action(step), observation_);
      if (!results) return tl::unexpected(std::move(results.error()));
      if ((*results)[0].invalid) return fail(ErrorCode::kInvalidEpisode, (*results)[0].reason);
    }
    for (Recording& recording : recordings_)
      if (Result<void> done = record_end(recording); !done) return done;
    return {};
  }

  Result<void> record_start(std::int64_t step) {
    Recording recording;
    recording.first_step = step;
    recording.seed = vector_->episode_seed(0);
    if (Result<void> done = suite_task(*twin_)->draw(recording.seed); !done) return done;
    recording.drawn = state_of(simulation_);
    recording.start = state_of(task_->simulation());
    recordings_.push_back(std::move(recording));
    return {};
  }

  // The last state is hidden behind the automatic reset: the twin plays the episode again.
  Result<void> record_end(Recording& recording) {
    dmc::SuiteTask* twin = suite_task(*twin_);
    if (Result<void> done = twin->reset(recording.seed); !done) return done;
    const auto size = static_cast<std::size_t>(vector_->action_size());
    for (std::size_t i = 0; i < recording.ctrls.size(); i += size)
      if (auto done = twin->step(std::span<const double>(recording.ctrls).subspan(i, size)); !done)
        return tl::unexpected(std::move(done.error()));
    recording.end = state_of(simulation_);
    return {};
  }

  // All steps of the episode and the automatic reset that follows.
  Result<void> time_env(const Recording& recording, double& seconds) {
    const std::int64_t end = recording.first_step + vector_->spec().episode_steps;
    const double begin = cpu_seconds();
    for (std::int64_t step = recording.first_step; step < end; ++step)
      if (auto results = vector_->step(action(step), observation_); !results)
        return tl::unexpected(std::move(results.error()));
    seconds += cpu_seconds() - begin;
    return {};
  }

  // A reset, settling included, and all steps of the episode.
  Result<void> time_raw(Recording& recording, double& seconds) {
    const mjModel* m = simulation_.m();
    mjData* d = simulation_.d();
    const double begin = cpu_seconds();
    mj_setState(m, d, recording.drawn.data(), mjSTATE_INTEGRATION);
    for (int i = 0; i < task_->settling_steps(); ++i) mj_step(m, d);
    mj_setState(m, d, recording.start.data(), mjSTATE_INTEGRATION);
    for (auto ctrl = recording.ctrls.begin(); ctrl != recording.ctrls.end(); ctrl += m->nu) {
      std::copy(ctrl, ctrl + m->nu, d->ctrl);
      for (int i = 0; i < task_->spec().physics_steps; ++i) mj_step(m, d);
    }
    seconds += cpu_seconds() - begin;
    return check_end(recording);
  }

  // The raw loop must have done the environment's work, to the bit.
  Result<void> check_end(const Recording& recording) const {
    if (state_of(simulation_) == recording.end) return {};
    return fail(ErrorCode::kInternal, "the raw loop and environment '" + options_.task +
                                          "' ended an episode in different states");
  }

  EnvBenchmark summary(const std::vector<double>& env, const std::vector<double>& raw) const {
    EnvBenchmark result;
    result.task = options_.task;
    result.rounds = options_.rounds;
    result.control_steps = steps_;
    result.physics_steps =
        steps_ * task_->spec().physics_steps + options_.episodes * task_->settling_steps();
    result.evaluates_again = simulation_.m()->opt.integrator == mjINT_RK4;
    std::vector<double> control, physics, raw_physics, ratio;
    for (std::size_t i = 0; i < env.size(); ++i) {
      control.push_back(static_cast<double>(steps_) / env[i]);
      physics.push_back(static_cast<double>(result.physics_steps) / env[i]);
      raw_physics.push_back(static_cast<double>(result.physics_steps) / raw[i]);
      ratio.push_back(raw[i] / env[i]);
    }
    result.control_steps_per_second = spread_of(control);
    result.physics_steps_per_second = spread_of(physics);
    result.raw_physics_steps_per_second = spread_of(raw_physics);
    result.ratio = spread_of(ratio);
    return result;
  }

  EnvBenchmarkOptions options_;
  dmc::SuiteTask* task_;       // inside vector_
  std::unique_ptr<Env> twin_;  // its simulation is the raw loop's
  std::unique_ptr<VectorEnv> vector_;
  mujoco::Simulation& simulation_;
  std::int64_t steps_;
  std::vector<float> observation_, actions_;
  std::vector<std::uint8_t> begin_;
  std::vector<Recording> recordings_;
};

}  // namespace

Result<EnvBenchmark> benchmark_env(const EnvBenchmarkOptions& options) {
  Result<Bench> bench = Bench::make(options);
  if (!bench) return tl::unexpected(std::move(bench.error()));
  return bench->run();
}

}  // namespace troupe::envs
