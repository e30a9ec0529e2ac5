// What every learner does with the replicas of its group, whatever it trains: begins them, and
// compares what they hold. The learner's own thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "learners/learner.hpp"
#include "learners/replicas/replicator.hpp"

namespace troupe::learners {

// The replicas that `options` asks for, joined to those of the group's other learners. Waits for
// them no longer than options.timeout; alone it has nobody to do without and waits as collectives
// do. Errors as of Replicator::make.
Result<std::unique_ptr<Replicator>> make_group_replicator(const LearnerOptions& options,
                                                          const LearnerGroup& group);

// Equal gradients give equal states; where memory or a kernel fails, nothing else would tell.
// `hash_of(i)`: of replica i of this learner, called in its thread. kInternal names the replica of
// the group that holds another state than the first, after update `version`. Every learner calls
// it.
Result<void> compare_states(Replicator& replicator, std::uint64_t version,
                            const std::function<std::uint64_t(int)>& hash_of);

}  // namespace troupe::learners
