// Exploration noise of environment actors. One object per environment actor; its whole state is its
// Random.
#pragma once

#include <algorithm>
#include <span>

#include "envs/spec/random.hpp"

namespace troupe::models {

// action <- clip(action + sigma * N(0, 1), -1, 1) per element, in units of the policy's output.
class GaussianNoise {
 public:
  GaussianNoise(double sigma, Random random) : sigma_(sigma), random_(random) {}

  void apply(std::span<float> actions) {
    if (sigma_ == 0) return;
    for (float& action : actions)
      action = std::clamp(action + static_cast<float>(sigma_ * random_.normal()), -1.0F, 1.0F);
  }

  const Random::State& state() const { return random_.state(); }
  void set_state(const Random::State& state) { random_.set_state(state); }

 private:
  double sigma_;
  Random random_;
};

}  // namespace troupe::models
