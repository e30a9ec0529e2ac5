// The collective of threads of one process.
#pragma once

#include <memory>
#include <vector>

#include "learners/collective.hpp"

namespace troupe::learners {

// One Collective per thread; `first` is the number that errors give to rank 0. Reductions add in
// the order of the ranks, each rank on its part of the elements: every byte is read once and
// written once. A rank that waits spins for microseconds, then sleeps.
std::vector<std::unique_ptr<Collective>> make_in_process_group(
    int size, std::chrono::milliseconds timeout = kCollectiveTimeout, int first = 0);

}  // namespace troupe::learners
