// Implements the shares.
#include "actors/roles/draw_shares.hpp"

#include <algorithm>
#include <numeric>

namespace troupe::actors {

std::vector<double> draw_shares(const std::vector<ShardState>& shards) {
  std::vector<double> shares;
  // A shard that holds nothing cannot be drawn from, whatever mass it told of.
  for (const ShardState& shard : shards) shares.push_back(shard.held > 0 ? shard.mass : 0);
  double total = std::accumulate(shares.begin(), shares.end(), 0.0);
  if (total == 0) {
    for (std::size_t i = 0; i < shards.size(); ++i) shares[i] = static_cast<double>(shards[i].held);
    total = std::accumulate(shares.begin(), shares.end(), 0.0);
  }
  if (total > 0)
    for (double& share : shares) share /= total;
  return shares;
}

std::vector<std::size_t> draw_counts(std::size_t items, const std::vector<double>& shares,
                                     Random& random) {
  std::vector<std::size_t> counts(shares.size());
  const auto possible = std::count_if(shares.begin(), shares.end(), [](double s) { return s > 0; });
  if (possible == 0) return counts;
  const auto is_last = [&](std::size_t shard) {
    return std::none_of(shares.begin() + static_cast<std::ptrdiff_t>(shard) + 1, shares.end(),
                        [](double s) { return s > 0; });
  };
  std::size_t last = 0;
  while (!is_last(last)) ++last;
  if (possible == 1) {
    counts[last] = items;
    return counts;
  }
  for (std::size_t i = 0; i < items; ++i) {
    double ticket = random.uniform();
    std::size_t shard = 0;
    // Rounding may leave a little over: it is the last one's.
    while (shard < last && ticket >= shares[shard]) ticket -= shares[shard++];
    ++counts[shard];
  }
  return counts;
}

}  // namespace troupe::actors
