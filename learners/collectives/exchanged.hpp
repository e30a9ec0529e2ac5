// A Collective over any Exchange: agrees on each call first, then moves the tensors.
#pragma once

#include <memory>
#include <string>

#include "learners/collective.hpp"
#include "learners/collectives/exchange.hpp"

namespace troupe::learners {

// Before data moves, ranks gather a digest of what each is about to do (one round of 32 bytes a
// rank), so that another order, shape or type is an error that names both calls and never a
// mistaken sum. Several small tensors of one type travel as one. `member` is what errors call a
// rank: "replica" or "process".
std::unique_ptr<Collective> make_exchanged_collective(std::unique_ptr<Exchange> exchange,
                                                      std::string member = "replica");

}  // namespace troupe::learners
