// What travels over the data channels, and the packing of its small messages: fixed lists of 64-bit
// little-endian words. Pure functions.
//
//   environment actor -> shard    kSegment   one encoded replay chunk
//   data actor -> learner         kWantLease index, incarnation, number of the request, hash of
//                                            what it reads: credit for one lease
//   learner -> data actor         kLease     number of the request, learner epoch, lease, epoch of
//                                            the set, first position, end
//   data actor -> learner         kSegment   the pictures of a lease; answered by kAck or kRefused
//   shard -> environment actor    kAck       worker, incarnation, sequence: that chunk is in a live
//   table
//                                            (or was a duplicate); it is also the credit for the
//                                            next one
//                                 kRefused   worker, incarnation, sequence, then text: never send
//                                 it again
//   actor, evaluator -> learner   kWantParameters   epoch, version held (0, 0: none): credit for
//                                                   one set
//   learner -> actor, evaluator   kParameters       one encoded parameter set, newer than asked
//   learner -> shard              kWantBatch        batch id, items: credit for one blob
//   learner -> parameter server   kUpdate           number, then a request of
//                                                   learners/parameter_servers/wire.hpp
//   parameter server -> learner   kUpdateAnswer     that number, then the answer
//   learner -> shard              kGrant            leave to insert (actors/roles/shard_state.hpp)
//                                 kPriorities       new priorities of items that were drawn
//   shard -> learner              kShardState       counts, mass, what waits: whenever they change
//                                 kBatch            batch id, items, smallest probability, then the
//                                                   columns; no items: the shard holds none
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>

#include "actors/runtime/channel.hpp"

namespace troupe::actors {

static_assert(std::endian::native == std::endian::little, "words travel as they lie in memory");

enum class DataKind : std::uint8_t {
  kSegment = 1,
  kAck = 2,
  kRefused = 3,
  kWantParameters = 4,
  kParameters = 5,
  kWantBatch = 6,
  kBatch = 7,
  kShardState = 8,
  kGrant = 9,
  kPriorities = 10,
  kWantLease = 11,
  kLease = 12,
  kUpdate = 13,
  kUpdateAnswer = 14,
};

template <std::size_t N>
ChannelMessage words_message(DataKind kind, const std::array<std::uint64_t, N>& words,
                             std::span<const std::uint8_t> tail = {}) {
  auto payload = std::make_shared<Bytes>(N * sizeof(std::uint64_t) + tail.size());
  std::memcpy(payload->data(), words.data(), N * sizeof(std::uint64_t));
  if (!tail.empty())
    std::memcpy(payload->data() + N * sizeof(std::uint64_t), tail.data(), tail.size());
  return {static_cast<std::uint8_t>(kind), std::move(payload)};
}

// The first N words of a payload; nullopt when it is shorter.
template <std::size_t N>
std::optional<std::array<std::uint64_t, N>> words_of(const ChannelMessage& message) {
  std::array<std::uint64_t, N> words{};
  if (!message.payload || message.payload->size() < sizeof(words)) return std::nullopt;
  std::memcpy(words.data(), message.payload->data(), sizeof(words));
  return words;
}

}  // namespace troupe::actors
