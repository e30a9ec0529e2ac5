// The Control Suite tasks (dm_control 1.0.50, Tassa et al. 2018, arXiv:1801.00690): one file per
// domain, tasks of a domain are parameters. Errors: those of Model::load. The registry adds the
// time limit. No thread rule beyond Env's.
#pragma once

#include <memory>
#include <string>

#include "envs/env.hpp"

namespace troupe::envs::dmc {

enum class CartpoleStart { kUpright, kHanging };

// Observations position (cart x in m, cos and sin of the pole's angle), velocity (2); one motor in
// [-1, 1].
Result<std::unique_ptr<Env>> make_cartpole(std::string name, CartpoleStart start);

// Observations position (8, without the horizontal one), velocity (9); six motors in [-1, 1].
Result<std::unique_ptr<Env>> make_cheetah(std::string name);

// Observations orientations (14), height, velocity (9); six motors in [-1, 1]. `speed` in m/s is
// the speed wanted; 0 rewards standing.
Result<std::unique_ptr<Env>> make_walker(std::string name, double speed);

}  // namespace troupe::envs::dmc
