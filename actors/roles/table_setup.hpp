// From a run's options to the tables of its shards and the limiter over all of them. Pure.
#pragma once

#include "actors/config/run_options.hpp"
#include "actors/roles/global_limiter.hpp"
#include "replay/table_types.hpp"

namespace troupe::actors {

// Options of shard `index`'s table, with its share of the capacity; `epoch` is the incarnation of
// the role that owns it. It inserts as far as the sampler allows.
replay::TableOptions table_options(const RunOptions& options, std::uint32_t index,
                                   std::uint32_t epoch);
replay::WeightScale weight_scale(const RunOptions& options);
replay::LimiterOptions global_limiter_options(const RunOptions& options);

}  // namespace troupe::actors
