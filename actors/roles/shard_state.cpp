// Implements the small messages between shards and samplers.
#include "actors/roles/shard_state.hpp"

#include <bit>

namespace troupe::actors {
namespace {

bool is(const ChannelMessage& message, DataKind kind) {
  return message.kind == static_cast<std::uint8_t>(kind);
}

}  // namespace

ShardState state_of(const replay::Table& table, std::uint64_t restored) {
  const replay::TableStatistics statistics = table.statistics();
  return {.epoch = table.options().shard_epoch,
          .restored = restored,
          .inserted = statistics.inserted_items,
          .prefilled = statistics.prefilled_items,
          .held = statistics.held_items,
          .mass = statistics.total_mass,
          .min_probability = statistics.min_probability,
          .waiting = statistics.waiting_items};
}

ChannelMessage encode_state(const ShardState& state) {
  return words_message<12>(DataKind::kShardState,
                           {state.epoch, state.restored, state.inserted, state.prefilled,
                            state.held, std::bit_cast<std::uint64_t>(state.mass),
                            std::bit_cast<std::uint64_t>(state.min_probability), state.waiting,
                            state.sampled, state.own, state.serial, state.allowed});
}

std::optional<ShardState> decode_state(const ChannelMessage& message) {
  const auto words = words_of<12>(message);
  if (!is(message, DataKind::kShardState) || !words) return std::nullopt;
  const auto& w = *words;
  ShardState state{.epoch = static_cast<std::uint32_t>(w[0]),
                   .restored = w[1],
                   .inserted = w[2],
                   .prefilled = w[3],
                   .held = w[4],
                   .mass = std::bit_cast<double>(w[5]),
                   .min_probability = std::bit_cast<double>(w[6]),
                   .waiting = w[7],
                   .sampled = w[8],
                   .own = w[9],
                   .serial = w[10],
                   .allowed = w[11]};
  // A shard's sums are finite and its counts leave room to add; what is not so is no state.
  constexpr std::uint64_t kMost = std::uint64_t{1} << 62;
  for (const std::uint64_t count :
       {state.inserted, state.prefilled, state.held, state.waiting, state.sampled, state.allowed})
    if (count > kMost) return std::nullopt;
  if (state.restored > state.inserted || state.own > state.sampled) return std::nullopt;
  if (!(state.mass >= 0 && state.mass < 1e300)) return std::nullopt;
  if (!(state.min_probability >= 0 && state.min_probability <= 1)) return std::nullopt;
  return state;
}

ChannelMessage encode_grant(const Grant& grant) {
  return words_message<4>(DataKind::kGrant, {grant.epoch, grant.serial, grant.allowed, grant.lead});
}

std::optional<Grant> decode_grant(const ChannelMessage& message) {
  const auto words = words_of<4>(message);
  if (!is(message, DataKind::kGrant) || !words) return std::nullopt;
  const auto& w = *words;
  return Grant{0, static_cast<std::uint32_t>(w[0]), w[1], w[2], static_cast<std::uint32_t>(w[3])};
}

ChannelMessage encode_priorities(const Priorities& priorities) {
  const std::size_t count = priorities.keys.size();
  Bytes tail(count * (sizeof(replay::ItemKey) + sizeof(double)));
  if (count > 0) {
    std::memcpy(tail.data(), priorities.keys.data(), count * sizeof(replay::ItemKey));
    std::memcpy(tail.data() + count * sizeof(replay::ItemKey), priorities.values.data(),
                count * sizeof(double));
  }
  return words_message<1>(DataKind::kPriorities, {count}, tail);
}

std::optional<Priorities> decode_priorities(const ChannelMessage& message) {
  const auto words = words_of<1>(message);
  if (!is(message, DataKind::kPriorities) || !words) return std::nullopt;
  constexpr std::size_t kEach = sizeof(replay::ItemKey) + sizeof(double);
  const std::size_t bytes = message.payload->size() - sizeof(std::uint64_t);
  if (bytes % kEach != 0 || (*words)[0] != bytes / kEach) return std::nullopt;
  const std::size_t count = bytes / kEach;
  Priorities priorities{std::vector<replay::ItemKey>(count), std::vector<double>(count)};
  if (count == 0) return priorities;
  const std::uint8_t* first = message.payload->data() + sizeof(std::uint64_t);
  std::memcpy(priorities.keys.data(), first, count * sizeof(replay::ItemKey));
  std::memcpy(priorities.values.data(), first + count * sizeof(replay::ItemKey),
              count * sizeof(double));
  return priorities;
}

std::vector<Priorities> by_shard(std::span<const replay::ItemKey> keys,
                                 std::span<const float> values, std::size_t shards) {
  std::vector<Priorities> parts(shards);
  for (std::size_t i = 0; i < keys.size() && i < values.size(); ++i) {
    if (keys[i].shard >= shards) continue;
    parts[keys[i].shard].keys.push_back(keys[i]);
    parts[keys[i].shard].values.push_back(static_cast<double>(values[i]));
  }
  return parts;
}

}  // namespace troupe::actors
