// The exchange of ranks in a ring (Patarasuk and Yuan 2009): each sends to the next and receives
// from the one before, so every link carries 2 (size - 1) / size of the data, whatever the size.
// Torch-free.
#pragma once

#include <memory>

#include "learners/collectives/byte_link.hpp"
#include "learners/collectives/exchange.hpp"

namespace troupe::learners {

// Part p of the elements is summed in the order of the ranks p, p+1, ..., so bits depend on size
// and count alone. A thread of the exchange sends while the caller receives. A rank that fails says
// so to the next, which passes it on: all know after one turn. `size` at least 2.
std::unique_ptr<Exchange> make_ring_exchange(int rank, int size, std::unique_ptr<ByteSender> next,
                                             std::unique_ptr<ByteReceiver> previous,
                                             std::chrono::milliseconds timeout);

}  // namespace troupe::learners
