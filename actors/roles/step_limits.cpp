// Implements the shares.
#include "actors/roles/step_limits.hpp"

#include <algorithm>

namespace troupe::actors {

void StepShares::restart(std::size_t shard, std::uint64_t inserted) {
  if (shard >= shards_.size()) {
    shards_.resize(shard + 1);
    limits_.resize(shard + 1);
  }
  shards_[shard] = {inserted, inserted};
  limits_[shard] = inserted;
}

void StepShares::hold(std::size_t shard) {
  if (shard < shards_.size()) shards_[shard].stays = false;
}

void StepShares::leave(std::size_t shard) {
  if (shard >= shards_.size()) return;
  shards_[shard] = {.inserted = 0, .most = 0, .stays = false};
  limits_[shard] = 0;
}

void StepShares::report(std::size_t shard, std::uint64_t inserted, std::uint64_t limit) {
  if (shard >= shards_.size()) return;
  shards_[shard].inserted = inserted;
  if (limit == limits_[shard]) shards_[shard].most = limit;
}

bool StepShares::deal(std::uint64_t wanted) {
  std::uint64_t promised = 0;
  for (const Shard& shard : shards_) promised += std::max(shard.most, shard.inserted);
  if (promised >= wanted) return take_back();
  const std::uint64_t room = wanted - promised;
  const auto count = static_cast<std::uint64_t>(
      std::count_if(shards_.begin(), shards_.end(), [](const Shard& each) { return each.stays; }));
  if (count == 0) return false;
  std::uint64_t nth = 0;
  for (std::size_t i = 0; i < shards_.size(); ++i) {
    Shard& shard = shards_[i];
    if (!shard.stays) continue;
    const std::uint64_t part = room / count + (nth++ < room % count ? 1 : 0);
    limits_[i] = shard.most = std::max(shard.most, shard.inserted) + part;
  }
  return true;
}

// A shard has used up its share, and another one has steps left: half of them come back.
bool StepShares::take_back() {
  const auto used_up = [&](std::size_t i) { return shards_[i].inserted >= limits_[i]; };
  bool any = false, changed = false;
  for (std::size_t i = 0; i < shards_.size(); ++i) any = any || (shards_[i].stays && used_up(i));
  for (std::size_t i = 0; any && i < shards_.size(); ++i) {
    if (used_up(i) || shards_[i].most != limits_[i]) continue;  // the latter: it is on its way
    limits_[i] = shards_[i].inserted + (limits_[i] - shards_[i].inserted) / 2;
    changed = true;
  }
  return changed;
}

}  // namespace troupe::actors
