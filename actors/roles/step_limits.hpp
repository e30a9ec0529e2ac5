// Deals out the steps that a run still lacks to its shards, so that stop.actor_steps is passed by
// no more than the last chunk of each shard, and all of it is used though shards fill unevenly.
// Pure; one owner.
#pragma once

#include <cstdint>
#include <vector>

namespace troupe::actors {

class StepShares {
 public:
  // A shard that has `inserted` steps and may insert none before it hears of its share: at its
  // start.
  void restart(std::size_t shard, std::uint64_t inserted);
  // It gets no more than it was promised: before its end.
  void hold(std::size_t shard);
  // It is over for good: what it has inserted and not been lost is no longer `wanted` of the
  // others.
  void leave(std::size_t shard);
  // Its report: steps it has, and the limit that it obeys now. A share that was made smaller is
  // free for others once the shard says so.
  void report(std::size_t shard, std::uint64_t inserted, std::uint64_t limit);
  // Shares `wanted` steps, of all shards together. True when limits() changed: they are to be sent.
  bool deal(std::uint64_t wanted);
  // By shard: steps that it may have inserted in all.
  const std::vector<std::uint64_t>& limits() const { return limits_; }

 private:
  struct Shard {
    std::uint64_t inserted = 0;
    std::uint64_t most = 0;  // the highest limit that it may still obey
    bool stays = true;       // gets shares
  };
  bool take_back();

  std::vector<Shard> shards_;
  std::vector<std::uint64_t> limits_;
};

}  // namespace troupe::actors
