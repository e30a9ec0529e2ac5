// Draws from several tables put together as one, so that probabilities and importance weights are
// those over all of them. A plain value; one owner.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "replay/table_types.hpp"

namespace troupe::replay {

class JoinedDraw {
 public:
  // Takes `part`, whose table got each of the draws with probability `share`
  // (widen_to_all_tables). The weights' exponent and scale are those of the last part.
  void add(SampledItems part, double share);
  // A table that may have got none of the draws: its smallest probability, times its share.
  void bound(double min_probability);
  // Draws of all parts in the order of add, for gather.
  const SampledItems& items() const { return items_; }
  // gather writes one shard's name into all keys; this gives each row its own. One key an item.
  void name_keys(std::span<ItemKey> keys) const;

 private:
  struct Origin {
    std::uint32_t shard, shard_epoch;
    std::size_t items;
  };
  SampledItems items_;
  std::vector<Origin> origins_;
};

}  // namespace troupe::replay
