// From a run's options to the tables of its shards: each shard's share of capacity, minimum and
// band. Pure.
#pragma once

#include "actors/config/run_options.hpp"
#include "replay/table_types.hpp"

namespace troupe::actors {

// Options of shard `index`'s table; `epoch` is the incarnation of the role that owns it.
replay::TableOptions table_options(const RunOptions& options, std::uint32_t index,
                                   std::uint32_t epoch);

}  // namespace troupe::actors
