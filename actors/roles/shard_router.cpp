// Implements the choice of shards.
#include "actors/roles/shard_router.hpp"

#include <algorithm>

#include "replay/bytes.hpp"

namespace troupe::actors {

bool ShardRouter::any_live() const {
  return std::find(live_.begin(), live_.end(), true) != live_.end();
}

std::uint32_t ShardRouter::route(std::uint32_t environment, bool begins,
                                 std::span<const std::size_t> unacknowledged) {
  const auto bound = shard_of_.find(environment);
  if (bound != shard_of_.end() && !begins && is_live(bound->second)) return bound->second;
  if (!any_live()) {
    if (bound != shard_of_.end()) return bound->second;
    const auto count = static_cast<std::uint32_t>(std::max<std::size_t>(1, live_.size()));
    return shard_of_[environment] = next_++ % count;
  }
  const auto waiting = [&](std::uint32_t shard) {
    return shard < unacknowledged.size() ? unacknowledged[shard] : std::size_t{0};
  };
  const auto count = static_cast<std::uint32_t>(live_.size());
  std::uint32_t best = count;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t shard = (next_ + i) % count;
    if (live_[shard] && (best == count || waiting(shard) < waiting(best))) best = shard;
  }
  next_ = best + 1;
  return shard_of_[environment] = best;
}

void ShardRouter::save(std::vector<std::uint8_t>& out) const {
  replay::ByteWriter writer(out);
  writer.put(next_);
  writer.put(static_cast<std::uint64_t>(shard_of_.size()));
  for (const auto& [environment, shard] : shard_of_) {
    writer.put(environment);
    writer.put(shard);
  }
}

Result<void> ShardRouter::load(std::span<const std::uint8_t> bytes) {
  replay::ByteReader reader(bytes);
  const auto next = reader.take<std::uint32_t>();
  const auto count = reader.take<std::uint64_t>();
  std::map<std::uint32_t, std::uint32_t> shards;
  for (std::uint64_t i = 0; i < count && reader.ok(); ++i) {
    const auto environment = reader.take<std::uint32_t>();
    shards[environment] = reader.take<std::uint32_t>();
  }
  if (!reader.finished()) return fail(ErrorCode::kCorrupt, "the saved routes are damaged");
  next_ = next;
  shard_of_ = std::move(shards);
  return {};
}

}  // namespace troupe::actors
