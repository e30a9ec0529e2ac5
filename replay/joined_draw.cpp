// Implements joined draws.
#include "replay/joined_draw.hpp"

#include <algorithm>
#include <iterator>

#include "replay/importance.hpp"

namespace troupe::replay {

void JoinedDraw::add(SampledItems part, double share) {
  widen_to_all_tables(part, share);
  origins_.push_back({part.shard, part.shard_epoch, part.items.size()});
  // The chunks of sequences are found by position.
  const auto offset = static_cast<std::uint32_t>(items_.chains.size());
  for (SampledItem& item : part.items) item.chain += offset;
  if (items_.items.empty())
    items_.items = std::move(part.items);
  else
    std::move(part.items.begin(), part.items.end(), std::back_inserter(items_.items));
  std::move(part.chains.begin(), part.chains.end(), std::back_inserter(items_.chains));
  items_.shard = part.shard;
  items_.shard_epoch = part.shard_epoch;
  items_.held_items += part.held_items;
  items_.total_mass += part.total_mass;
  items_.importance_exponent = part.importance_exponent;
  items_.weight_scale = part.weight_scale;
  bound(part.min_probability);
}

void JoinedDraw::bound(double min_probability) {
  if (min_probability <= 0) return;
  items_.min_probability = items_.min_probability == 0
                               ? min_probability
                               : std::min(items_.min_probability, min_probability);
}

void JoinedDraw::name_keys(std::span<ItemKey> keys) const {
  std::size_t row = 0;
  for (const Origin& origin : origins_)
    for (std::size_t i = 0; i < origin.items && row < keys.size(); ++i, ++row) {
      keys[row].shard = origin.shard;
      keys[row].shard_epoch = origin.shard_epoch;
    }
}

}  // namespace troupe::replay
