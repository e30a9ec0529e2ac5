// Which shard an environment's steps go to: all of one episode to the same, because items are built
// there, and each new episode to the shard that answers soonest. Pure; one owner.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "envs/spec/result.hpp"

namespace troupe::actors {

class ShardRouter {
 public:
  // Equal shards are taken in turn, from `first` on, so that actors spread.
  explicit ShardRouter(std::uint32_t first) : next_(first) {}

  // Which shards are there now; more may come.
  void set_live(std::vector<bool> live) { live_ = std::move(live); }
  bool is_live(std::uint32_t shard) const { return shard < live_.size() && live_[shard]; }
  bool any_live() const;

  // The shard for steps of an environment. At an episode's beginning, and when its shard is gone,
  // that is one of those that are there: the one with the fewest messages unacknowledged
  // ([shard]; missing ones count 0). While none is there, it is the one that is waited for.
  std::uint32_t route(std::uint32_t environment, bool begins,
                      std::span<const std::size_t> unacknowledged);

  void save(std::vector<std::uint8_t>& out) const;
  // kCorrupt leaves the router as it was.
  Result<void> load(std::span<const std::uint8_t> bytes);

 private:
  std::vector<bool> live_;
  std::map<std::uint32_t, std::uint32_t> shard_of_;  // environment
  std::uint32_t next_;
};

}  // namespace troupe::actors
