// Implements the placement.
#include "learners/parameter_servers/placement.hpp"

#include <algorithm>
#include <numeric>

namespace troupe::learners {

double Placement::imbalance() const {
  const std::int64_t sum = std::accumulate(bytes.begin(), bytes.end(), std::int64_t{0});
  if (sum == 0) return 1;
  return static_cast<double>(*std::max_element(bytes.begin(), bytes.end())) *
         static_cast<double>(bytes.size()) / static_cast<double>(sum);
}

Placement place_by_bytes(std::span<const std::int64_t> bytes, int servers) {
  std::vector<std::size_t> order(bytes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return bytes[a] > bytes[b]; });
  Placement placement{.server_of = std::vector<int>(bytes.size()),
                      .bytes = std::vector<std::int64_t>(static_cast<std::size_t>(servers))};
  for (const std::size_t parameter : order) {
    const auto emptiest = std::min_element(placement.bytes.begin(), placement.bytes.end());
    *emptiest += bytes[parameter];
    placement.server_of[parameter] = static_cast<int>(emptiest - placement.bytes.begin());
  }
  return placement;
}

}  // namespace troupe::learners
