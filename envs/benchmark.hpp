// How fast a physics task is stepped, beside MuJoCo alone doing the same work. One call uses one
// thread and several seconds.
#pragma once

#include <cstdint>
#include <string>

#include "envs/spec/result.hpp"

namespace troupe::envs {

struct EnvBenchmarkOptions {
  std::string task;           // a "dmc/" task
  int rounds = 7;             // at least 5; environment and raw loop take turns in each
  std::int64_t episodes = 2;  // whole episodes per round and loop
  std::uint64_t seed = 1;
};

struct Spread {
  double min = 0, median = 0, max = 0;  // over the rounds
};

struct EnvBenchmark {
  std::string task;
  int rounds = 0;
  std::int64_t control_steps = 0;  // per round and loop
  std::int64_t physics_steps = 0;  // per round and loop, those of resets included
  // The task's step is more than its mj_steps: with RK4 the suite evaluates the model once more
  // after them, for the observation (mj_step1). The raw loop does not, so the ratio stays below 1.
  bool evaluates_again = false;
  // Per second of this thread's CPU time, so that other load on the machine counts for neither
  // side.
  Spread control_steps_per_second;
  Spread physics_steps_per_second;
  Spread raw_physics_steps_per_second;
  Spread ratio;  // physics_steps_per_second / raw_physics_steps_per_second of the same round
};

// Times a VectorEnv of one environment (policy units in, float observations, rewards, automatic
// resets) against a bare mj_step loop: same first states, same controls, same number of physics
// steps, settling steps of resets included. Both must end every episode in bitwise equal states:
// kInternal otherwise. Errors besides: those of make_env; kInvalidArgument for a task without
// physics or bad options.
Result<EnvBenchmark> benchmark_env(const EnvBenchmarkOptions& options);

}  // namespace troupe::envs
