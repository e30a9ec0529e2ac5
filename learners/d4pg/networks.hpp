// The four networks of one D4PG replica as flat buffers. Owned by the replica; used by its thread.
#pragma once

#include "envs/spec/random.hpp"
#include "learners/d4pg/step.hpp"
#include "models/flat_parameters.hpp"

namespace troupe::learners {

struct D4pgNetworks {
  // All zero; `type` other than f32 is for checks of the mathematics.
  explicit D4pgNetworks(const D4pgModel& model, at::ScalarType type = at::kFloat);

  // Draws policy, then critic, and copies both to their targets.
  void initialise(const D4pgModel& model, Random& random);
  void copy_to_targets();
  // Raw views for kernels; f32 on the CPU.
  D4pgBuffers buffers() const;

  models::FlatParameters policy, critic, target_policy, target_critic;
};

}  // namespace troupe::learners
