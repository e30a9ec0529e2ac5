// What the Control Suite's tasks share: the order of a reset and of a step, and the saved state. A
// domain says where episodes start, what is observed and what is rewarded. No thread rule beyond
// Env's.
#pragma once

#include <string>
#include <utility>

#include "envs/env.hpp"
#include "envs/mujoco/simulation.hpp"
#include "envs/spec/random.hpp"

namespace troupe::envs::dmc {

class SuiteTask : public Env {
 public:
  const EnvSpec& spec() const override { return spec_; }

  Result<void> reset(std::uint64_t seed) override {
    Random random(seed);
    if (Result<void> done = simulation_.reset(); !done) return done;
    if (Result<void> done = initialize_episode(random); !done) return done;
    return simulation_.forward();
  }

  Result<Transition> step(std::span<const double> action) override {
    std::copy(action.begin(), action.end(), simulation_.d()->ctrl);
    if (Result<void> done = simulation_.step(spec_.physics_steps); !done)
      return tl::unexpected(std::move(done.error()));
    return Transition{.reward = reward()};
  }

  // Randomness is spent in reset alone, so the physics is the whole state.
  void save_state(std::vector<std::uint8_t>& out) const override { simulation_.save(out); }
  Result<void> load_state(std::span<const std::uint8_t> bytes) override {
    return simulation_.load(bytes);
  }

  // For benchmarks and tests that compare with MuJoCo itself.
  mujoco::Simulation& simulation() { return simulation_; }

 protected:
  SuiteTask(std::string name, std::shared_ptr<const mujoco::Model> model, int physics_steps)
      : simulation_(std::move(model)) {
    spec_.name = std::move(name);
    spec_.action = simulation_.model().action_spec();
    spec_.physics_steps = physics_steps;
    spec_.control_timestep = simulation_.m()->opt.timestep * physics_steps;
  }

  // Draws the first state, on top of the model's default one.
  virtual Result<void> initialize_episode(Random& random) = 0;
  virtual double reward() const = 0;

  const mjData* d() const { return simulation_.d(); }

  EnvSpec spec_;
  mujoco::Simulation simulation_;
};

// Copies `size` numbers and returns the place behind them.
inline double* write(const mjtNum* source, int size, double* out) {
  return std::copy(source, source + size, out);
}

}  // namespace troupe::envs::dmc
