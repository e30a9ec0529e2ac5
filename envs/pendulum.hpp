// Gymnasium's Pendulum-v1, computed analytically in double. No thread rule beyond Env's.
#pragma once

#include <memory>

#include "envs/env.hpp"

namespace troupe::envs {

// Observation "state": cos θ, sin θ, θ' (rad/s), θ = 0 upright. Action: torque in [-2, 2] N m.
// Reward
// -(θ² + 0.1 θ'² + 0.001 u²) of the state before the step, θ wrapped to [-π, π). Reset: θ uniform
// in
// [-π, π], θ' in [-1, 1]. Never terminates; the registry limits it to 200 steps.
Result<std::unique_ptr<Env>> make_pendulum();

}  // namespace troupe::envs
