// The arithmetic of importance.hpp.
#include "replay/importance.hpp"

#include <algorithm>
#include <cmath>

namespace troupe::replay {

void importance_weights(const SampledItems& items, std::span<float> weights) {
  std::fill(weights.begin(), weights.end(), 1.0F);
  if (items.importance_exponent == 0 || items.items.empty()) return;
  double smallest = items.min_probability;
  if (items.weight_scale == WeightScale::kBatch) {
    smallest = items.items.front().probability;
    for (const SampledItem& item : items.items) smallest = std::min(smallest, item.probability);
  }
  for (std::size_t i = 0; i < items.items.size() && i < weights.size(); ++i)
    if (const double probability = items.items[i].probability; probability > smallest)
      weights[i] = static_cast<float>(std::pow(smallest / probability, items.importance_exponent));
}

void widen_to_all_tables(SampledItems& items, double share) {
  for (SampledItem& item : items.items) item.probability *= share;
  items.min_probability *= share;
}

}  // namespace troupe::replay
