// The arithmetic of importance.hpp.
#include "replay/importance.hpp"

#include <algorithm>
#include <cmath>

namespace troupe::replay {

namespace {

// `probability(i)` for each of the weights.
template <class Probability>
void weigh(std::size_t count, Probability probability, double smallest, double exponent,
           WeightScale scale, std::span<float> weights) {
  std::fill(weights.begin(), weights.end(), 1.0F);
  if (exponent == 0 || count == 0) return;
  if (scale == WeightScale::kBatch) {
    smallest = probability(0);
    for (std::size_t i = 1; i < count; ++i) smallest = std::min(smallest, probability(i));
  }
  for (std::size_t i = 0; i < count && i < weights.size(); ++i)
    if (const double p = probability(i); p > smallest)
      weights[i] = static_cast<float>(std::pow(smallest / p, exponent));
}

}  // namespace

void importance_weights(const SampledItems& items, std::span<float> weights) {
  weigh(
      items.items.size(), [&](std::size_t i) { return items.items[i].probability; },
      items.min_probability, items.importance_exponent, items.weight_scale, weights);
}

void importance_weights(std::span<const double> probabilities, double min_probability,
                        double importance_exponent, WeightScale scale, std::span<float> weights) {
  weigh(
      probabilities.size(), [&](std::size_t i) { return probabilities[i]; }, min_probability,
      importance_exponent, scale, weights);
}

void widen_to_all_tables(SampledItems& items, double share) {
  for (SampledItem& item : items.items) item.probability *= share;
  items.min_probability *= share;
}

}  // namespace troupe::replay
