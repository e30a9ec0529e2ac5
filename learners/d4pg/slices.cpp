// Implements the division of the networks.
#include "learners/d4pg/slices.hpp"

namespace troupe::learners {

D4pgSlices place_slices(const D4pgModel& model, int servers) {
  std::vector<D4pgSlice> slices;
  std::vector<std::int64_t> bytes;
  for (const bool of_policy : {false, true}) {
    const auto& segments = (of_policy ? model.policy_layout : model.critic_layout).segments;
    for (std::size_t i = 0; i < segments.size(); ++i) {
      slices.push_back({of_policy, i});
      bytes.push_back(segments[i].elements * static_cast<std::int64_t>(sizeof(float)));
    }
  }
  D4pgSlices found{
      .of_server = std::vector<std::vector<D4pgSlice>>(static_cast<std::size_t>(servers)),
      .placement = place_by_bytes(bytes, servers)};
  for (std::size_t i = 0; i < slices.size(); ++i)
    found.of_server[static_cast<std::size_t>(found.placement.server_of[i])].push_back(slices[i]);
  return found;
}

const models::Segment& segment_of(const D4pgModel& model, const D4pgSlice& slice) {
  return (slice.of_policy ? model.policy_layout : model.critic_layout).segments[slice.segment];
}

double learning_rate_of(const D4pgOptions& options, bool of_policy) {
  const double own = of_policy ? options.policy_learning_rate : options.critic_learning_rate;
  return own > 0 ? own : options.learning_rate;
}

}  // namespace troupe::learners
