// Checks of the learning options that need no LibTorch: for `troupe check` and for the learner
// itself. Pure.
#pragma once

#include "envs/spec/result.hpp"
#include "envs/spec/spec.hpp"
#include "learners/options.hpp"

namespace troupe::learners {

// Ranges of every field and what fields mean together (support, batch over replicas, devices,
// widths). kInvalidArgument naming the key as the configuration spells it.
Result<void> validate(const LearnerOptions& options);

// What D4PG asks of the environment: continuous actions and at least one f32 observation.
Result<void> validate_d4pg_spec(const EnvSpec& spec);

}  // namespace troupe::learners
