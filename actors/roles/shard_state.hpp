// What a replay shard tells its samplers of itself, what they allow it, and the messages that carry
// both and the learner's priorities. Pure functions; fixed lists of 64-bit words
// (actors/messages/data_protocol.hpp).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "actors/messages/data_protocol.hpp"
#include "replay/table.hpp"

namespace troupe::actors {

// Counts are in items.
struct ShardState {
  std::uint32_t epoch = 0;      // of the shard; grows with every life
  std::uint64_t restored = 0;   // `inserted` when this life began
  std::uint64_t inserted = 0;   // so far, restored ones included, prefilled ones not
  std::uint64_t prefilled = 0;  // by replay.prefill
  std::uint64_t held = 0;       // now
  double mass = 0;              // by which shards share draws; `held` where there are no priorities
  double min_probability = 0;   // smallest one with which this shard would draw an item
  std::uint64_t waiting = 0;  // that the first chunk which waits for leave would complete; 0: none
  std::uint64_t sampled = 0;  // in this life, by all samplers
  std::uint64_t own = 0;      // of them by the one that is told
  std::uint64_t serial = 0;   // of the grant in force; 0: none came yet
  std::uint64_t allowed = 0;  // by it: `inserted` may not pass this
  bool operator==(const ShardState&) const = default;
};

// Leave to insert, given by a sampler: `inserted` may reach `allowed`. Absolute, so that a lost or
// repeated grant does no harm; a later one (by serial) may be lower. Serial 0 only says hello.
struct Grant {
  std::size_t shard = 0;
  std::uint32_t epoch = 0;  // a shard of another epoch ignores it
  std::uint64_t serial = 0, allowed = 0;
  // Of samplers of which one gives leave for all, that one's: a shard no longer obeys those of a
  // lower lead.
  std::uint32_t lead = 0;
};

// The table's part of a state; `restored` as above. The grant's part and the
// samplers' stay empty.
ShardState state_of(const replay::Table& table, std::uint64_t restored);

ChannelMessage encode_state(const ShardState& state);
std::optional<ShardState> decode_state(const ChannelMessage& message);
// The shard's number does not travel: the channel is the shard's.
ChannelMessage encode_grant(const Grant& grant);
std::optional<Grant> decode_grant(const ChannelMessage& message);

// Priorities for items of one shard, in step.
struct Priorities {
  std::vector<replay::ItemKey> keys;
  std::vector<double> values;
};
ChannelMessage encode_priorities(const Priorities& priorities);
// nullopt when the sizes do not fit.
std::optional<Priorities> decode_priorities(const ChannelMessage& message);
// By shard; priorities of shards beyond `shards` are left out.
std::vector<Priorities> by_shard(std::span<const replay::ItemKey> keys,
                                 std::span<const float> values, std::size_t shards);

}  // namespace troupe::actors
