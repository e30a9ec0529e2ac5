// Importance weights: they undo the bias of drawing some items more often than others (Schaul,
// Quan, Antonoglou, Silver, Prioritized Experience Replay, 2016, 3.4). Pure functions; any thread.
#pragma once

#include <span>

#include "replay/table_types.hpp"

namespace troupe::replay {

// weights[i] = (1 / (N x P_i))^beta over the largest such weight: of the batch, or of all items
// held (items.weight_scale). N cancels, so that the weight is (P_min / P_i)^beta, in 0..1; exactly
// 1 where beta is 0 or all P are equal. One weight an item.
void importance_weights(const SampledItems& items, std::span<float> weights);
// The same from the probabilities alone; `min_probability` counts with WeightScale::kTable only.
void importance_weights(std::span<const double> probabilities, double min_probability,
                        double importance_exponent, WeightScale scale, std::span<float> weights);

// A learner that draws from several tables takes each draw from table s with probability
// share_s = total_mass_s / sum of total_mass. This turns the probabilities of one table's draw into
// those over all of them: P_i x share and min_probability x share. Joined draws have the smallest
// of these min_probability.
void widen_to_all_tables(SampledItems& items, double share);

}  // namespace troupe::replay
