// How a batch's draws are shared among shards. Pure.
#pragma once

#include <cstddef>
#include <vector>

#include "actors/roles/shard_state.hpp"
#include "envs/spec/random.hpp"

namespace troupe::actors {

// Probability of each shard to get a draw: its mass over the sum of all, so that every item is
// drawn with the probability it would have in one table. While no shard has mass (all priorities
// are 0), what they hold counts instead. All zero when nothing is held; their sum is 1 otherwise.
// Only `held` and `mass` are looked at.
std::vector<double> draw_shares(const std::vector<ShardState>& shards);

// How many of `items` come from each shard (multinomial). All zero when all shares are. Sums to
// `items` otherwise.
std::vector<std::size_t> draw_counts(std::size_t items, const std::vector<double>& shares,
                                     Random& random);

}  // namespace troupe::actors
