// A simulated replay shard: the run's own allowance decides what it inserts; with its learner it is
// a thread that waits for chunks, elsewhere one that looks at its channels in turn. One owner.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "actors/roles/shard_state.hpp"
#include "actors/simulation/actor_model.hpp"
#include "actors/simulation/world.hpp"
#include "replay/rate_limiter.hpp"

namespace troupe::actors::simulation {

class ShardModel {
 public:
  ShardModel(World& world, std::int64_t index, std::size_t host);

  // From the network.
  void take_chunk(const ChunkMessage& chunk);
  void take_grant(const Grant& grant) { grants_.push_back(grant); }
  void take_request(std::int64_t learner, std::uint64_t batch, std::uint64_t items);

  // For samplers of the same process.
  ShardState state() const;
  void allow(const Grant& grant);

  std::size_t host() const { return host_; }
  std::uint64_t inserted_items() const { return limiter_.inserts(); }
  double busy_seconds() const { return busy_seconds_; }

 private:
  struct Wanted {
    std::int64_t learner;
    std::uint64_t batch, items;
  };
  void serve_next();
  void look();
  void take_first();
  std::uint64_t waiting() const;
  void answer(const Wanted& wanted);
  void tell();
  void run(double seconds, Engine::Action done);

  World& world_;
  const std::int64_t index_;
  const std::size_t host_;
  replay::RateLimiter limiter_;
  std::deque<ChunkMessage> pending_;
  std::deque<Wanted> wanted_;
  std::deque<Grant> grants_;
  std::uint64_t serial_ = 0, allowed_ = 0, sampled_ = 0;
  std::vector<std::optional<ShardState>> told_;  // to each learner
  double told_at_ = -1, last_news_ = 0, busy_seconds_ = 0;
  bool busy_ = false, retry_ = false, news_ = false;
};

}  // namespace troupe::actors::simulation
