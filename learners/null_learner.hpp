// A learner that counts its batches and learns nothing: it shows how fast everything else is.
// Torch-free; belongs to one thread.
#pragma once

#include "learners/learner.hpp"

namespace troupe::learners {

// Publishes a linear policy of zeros, so that environment actors have something to act with.
std::unique_ptr<Learner> make_null_learner(const LearnerOptions& options,
                                           const LearnerContext& context);

}  // namespace troupe::learners
