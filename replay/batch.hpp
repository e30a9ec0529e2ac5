// A batch of items in the learner's own memory: named typed columns, one row per item. Allocated
// once, filled again and again by a table's gather. One owner at a time.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "envs/spec/spec.hpp"

namespace troupe::replay {

// Names an item for priority updates: a late one never hits a recycled slot or a restarted shard.
struct ItemKey {
  std::uint32_t shard = 0;
  std::uint32_t shard_epoch = 0;
  std::uint32_t slot = 0;
  std::uint32_t generation = 0;
  bool operator==(const ItemKey&) const = default;
};

// Columns of an n-step transition batch, B rows each (u8 observation columns likewise under their
// names):
//   observation      f32 [B, observation_size]     s_t
//   action           f32 [B, action] (i32 [B] if discrete)
//   reward           f32 [B]    sum_{i<k} gamma^i r_{t+i}, k <= n steps really summed
//   discount         f32 [B]    gamma^k, or 0 after a termination
//   next_observation f32 [B, observation_size]     s_{t+k}
//   weight           f32 [B]    importance weight in 0..1, 1 unless prioritised
class Batch {
 public:
  Batch() = default;
  // `columns` without the leading item axis; memory is 64-byte aligned per column, zeroed.
  Batch(std::vector<Column> columns, std::int64_t items);
  // The same in the caller's memory, which must hold bytes_of(columns, items), be aligned for every
  // column's type, and outlive the batch. Nothing is zeroed.
  Batch(std::vector<Column> columns, std::int64_t items, std::span<std::uint8_t> memory);
  // From the first column's first byte to the last one's padded end.
  static std::size_t bytes_of(const std::vector<Column>& columns, std::int64_t items);

  // Moves keep the memory where it is; a copy would point into the original.
  Batch(Batch&&) noexcept = default;
  Batch& operator=(Batch&&) noexcept = default;
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;

  std::int64_t items() const { return items_; }
  const std::vector<Column>& columns() const { return columns_; }
  // Index of a column; -1 when there is none of that name.
  int find(std::string_view name) const;
  std::span<std::uint8_t> bytes(int column);
  std::span<const std::uint8_t> bytes(int column) const;
  // The column as floats; asserts that it is f32. Empty for a name that is not there.
  std::span<float> floats(std::string_view name);
  std::span<const float> floats(std::string_view name) const;

  std::vector<ItemKey> keys;            // [B]
  std::vector<std::uint64_t> versions;  // [B] parameter version that acted (policy lag)
  std::uint64_t batch_id = 0;           // set by the sampler

 private:
  std::vector<Column> columns_;
  std::vector<std::size_t> offsets_;  // into storage_, multiples of 64
  std::vector<std::uint8_t> storage_;
  std::uint8_t* base_ = nullptr;  // first 64-byte aligned byte
  std::int64_t items_ = 0;
};

}  // namespace troupe::replay
