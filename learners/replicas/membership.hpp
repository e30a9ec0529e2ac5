// How members of a new group come to one state: after a failure, when one has joined or come back.
#pragma once

#include "learners/collective.hpp"

namespace troupe::learners {

// No collective fails atomically, so survivors may differ by one update, and who joins has none.
// Every member says how many updates it has applied; all of them, survivors included, take `state`
// (parameters, optimizer state and counters, in one order) from the lowest rank that has applied
// most, and the result is that number. A call of every rank of the new group; nobody skips it
// because its own state seems to be good: that is what leaves the others waiting. An error leaves
// `state` as it was.
Result<std::uint64_t> agree_on_state(Collective& collective, std::uint64_t applied,
                                     std::span<const at::Tensor> state);

}  // namespace troupe::learners
