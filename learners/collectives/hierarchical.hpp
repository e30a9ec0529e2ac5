// The collective of replicas in several processes: threads of a process first, then one of each
// process with those of the others.
#pragma once

#include <memory>
#include <vector>

#include "learners/collective.hpp"

namespace troupe::learners {

// One Collective per thread of this process; `between` connects the processes (rank = process),
// each of which has `local` replicas. Rank = process * local + thread. What is reduced is summed
// over the threads in their order, then over the processes. An error on any thread of any process
// reaches all. kInvalidArgument: the processes have different numbers of threads.
Result<std::vector<std::unique_ptr<Collective>>> make_hierarchical_group(
    int local, std::unique_ptr<Collective> between,
    std::chrono::milliseconds timeout = kCollectiveTimeout);

}  // namespace troupe::learners
