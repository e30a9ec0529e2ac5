// Makes the learner of a run that learns from a replay, as its configuration and assignment say.
#pragma once

#include <memory>

#include "actors/roles/role_context.hpp"
#include "learners/learner.hpp"

namespace troupe::actors {

struct LearnerSetup {
  EnvSpec spec;  // of the run's environment
  std::unique_ptr<learners::Learner> learner;
};

// With the state of the checkpoint that the assignment names, if any. kInvalidArgument: one of
// another regime.
Result<LearnerSetup> set_up_learner(const RoleContext& context);

}  // namespace troupe::actors
