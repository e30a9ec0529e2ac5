// How a learner draws its batches: alone, as the one of several that leads, following that one, or
// for a group of its own.
// Called by the learner role's thread.
#pragma once

#include <string>

#include "actors/roles/batch_source.hpp"
#include "actors/roles/learner_seat.hpp"

namespace troupe::actors {

inline constexpr const char* kLimiterFile = "limiter.json";  // in checkpoints

// `seat` is null for a learner that trains alone. The limiter goes on as `limiter_state` says, what
// the source before this one saved; else from the checkpoint that the assignment names. kCorrupt: a
// state that cannot be read.
Result<SourceOptions> source_options(const RoleContext& context, const learners::Learner& learner,
                                     const LearnerSeat* seat, const std::string& limiter_state);

// By which shards know it. To them whoever leads learners in sync is one sampler, whose next life
// takes the place of the last.
std::string sampler_name(const RoleContext& context, const LearnerSeat* seat);

}  // namespace troupe::actors
