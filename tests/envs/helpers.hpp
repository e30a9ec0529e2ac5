// What several tests of envs/ share: a VectorEnv with its buffers, random actions, and an
// environment whose behaviour a test scripts. One thread.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "envs/spec/random.hpp"
#include "envs/vector_env.hpp"

namespace troupe::envs::testing {

// Unwraps a Result, failing the test with its message when there is none.
template <class T>
T value_of(Result<T> result) {
  if (!result) {
    ADD_FAILURE() << result.error().message;
    throw std::runtime_error(result.error().message);
  }
  return std::move(*result);
}

inline void expect_ok(const Result<void>& result) {
  EXPECT_TRUE(result) << (result ? "" : result.error().message);
}

// An environment whose every answer a test gives; counts episodes and steps. Observation of one
// element.
class FakeEnv : public Env {
 public:
  FakeEnv() {
    spec_.name = "fake";
    spec_.observations = {{.name = "value", .shape = {1}}};
    spec_.action.low = {-1};
    spec_.action.high = {1};
  }
  const EnvSpec& spec() const override { return spec_; }
  Result<void> reset(std::uint64_t seed) override {
    ++resets;
    return on_reset(seed);
  }
  Result<Transition> step(std::span<const double> action) override {
    ++steps;
    return on_step(action);
  }
  void observe(std::span<double> values) const override { values[0] = on_observe(); }
  void save_state(std::vector<std::uint8_t>&) const override {}
  Result<void> load_state(std::span<const std::uint8_t>) override { return {}; }

  std::function<Result<void>(std::uint64_t)> on_reset = [](std::uint64_t) {
    return Result<void>{};
  };
  std::function<Result<Transition>(std::span<const double>)> on_step = [](std::span<const double>) {
    return Result<Transition>(Transition{});
  };
  std::function<double()> on_observe = [] { return 0.0; };
  std::int64_t resets = 0, steps = 0;
  EnvSpec spec_;
};

// A VectorEnv with the buffers a caller would own.
struct Runner {
  explicit Runner(std::unique_ptr<VectorEnv> made)
      : envs(std::move(made)),
        observations(static_cast<std::size_t>(envs->count() * envs->observation_size())),
        actions(static_cast<std::size_t>(envs->count() * envs->action_size())) {}
  Runner(std::string_view name, std::int64_t count, std::uint64_t seed, std::uint64_t worker = 0,
         const EnvConfig& config = {})
      : Runner(value_of(VectorEnv::make(name, config, count, seed, worker))) {}

  Runner& reset() {
    expect_ok(envs->reset(observations));
    return *this;
  }
  std::span<const StepResult> step() { return value_of(envs->step(actions, observations)); }
  // One step with actions uniform in [-1, 1].
  std::span<const StepResult> step(Random& random) {
    for (float& action : actions) action = static_cast<float>(random.uniform(-1, 1));
    return step();
  }

  std::unique_ptr<VectorEnv> envs;
  std::vector<float> observations, actions;
};

// One FakeEnv in a Runner.
inline std::pair<Runner, FakeEnv*> make_fake() {
  auto fake = std::make_unique<FakeEnv>();
  FakeEnv* raw = fake.get();
  std::vector<std::unique_ptr<Env>> envs;
  envs.push_back(std::move(fake));
  return {Runner(value_of(VectorEnv::make(std::move(envs), 1))), raw};
}

// The tasks that run without a deliberate accident, wait or refusal.
inline std::vector<std::string> ordinary_tasks() {
  return {"dmc/cartpole_balance", "dmc/cartpole_swingup", "dmc/cheetah_run", "dmc/walker_stand",
          "dmc/walker_walk",      "dmc/walker_run",       "pendulum",        "probe/const",
          "probe/term",           "probe/seed",           "probe/box"};
}

}  // namespace troupe::envs::testing
