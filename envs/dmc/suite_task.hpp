// What the Control Suite's tasks share: the order of a reset and of a step, and the saved state. A
// domain says where episodes start, what is observed and what is rewarded. No thread rule beyond
// Env's.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>

#include "envs/env.hpp"
#include "envs/mujoco/simulation.hpp"
#include "envs/spec/random.hpp"

namespace troupe::envs::dmc {

class SuiteTask : public Env {
 public:
  const EnvSpec& spec() const override { return spec_; }
  Result<void> reset(std::uint64_t seed) override;
  Result<Transition> step(std::span<const double> action) override;

  // Randomness is spent in reset alone, so the physics is the whole state.
  void save_state(std::vector<std::uint8_t>& out) const override { simulation_.save(out); }
  Result<void> load_state(std::span<const std::uint8_t> bytes) override {
    return simulation_.load(bytes);
  }

  // The first half of reset: the state drawn from `seed`, before it settles.
  Result<void> draw(std::uint64_t seed);
  // Physics steps that a reset runs before the episode starts.
  int settling_steps() const { return settling_steps_; }
  // For benchmarks and tests that compare with MuJoCo itself.
  mujoco::Simulation& simulation() { return simulation_; }

 protected:
  SuiteTask(std::string name, std::shared_ptr<const mujoco::Model> model, int physics_steps,
            int settling_steps = 0);

  // Draws a state on top of the model's default one.
  virtual void draw_state(Random& random) = 0;
  virtual double reward() const = 0;

  const mjModel* m() const { return simulation_.m(); }
  const mjData* d() const { return simulation_.d(); }
  // Draws the position of a limited joint within its range.
  void draw_limited(int joint, Random& random);

  EnvSpec spec_;
  mujoco::Simulation simulation_;
  int settling_steps_;
};

// Loads a domain's model and makes sure that what observe() reads is there: kInvalidArgument when
// the file has other numbers of positions, velocities or bodies than the reference.
struct ModelSizes {
  int positions, velocities, bodies;
};
Result<std::shared_ptr<const mujoco::Model>> load_model(std::string_view file, ModelSizes sizes);

// Copies `size` numbers and returns the place behind them.
inline double* write(const mjtNum* source, int size, double* out) {
  return std::copy(source, source + size, out);
}

}  // namespace troupe::envs::dmc
