// The rows of one drawn item by their distance from its first step, across its chunks. For gather;
// one thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "replay/row_reader.hpp"
#include "replay/table_types.hpp"

namespace troupe::replay {

// One column of a batch: where its rows go, and what each of them shows.
struct RowTarget {
  std::uint8_t* data = nullptr;
  std::size_t row_bytes = 0;  // of one row of the chunk's column
  std::uint32_t stack = 1;    // rows that an observation shows

  std::size_t shown_bytes() const { return row_bytes * stack; }
};

class ItemRows {
 public:
  // Of an item with a chain. All three must outlive it.
  ItemRows(const SampledItem& item, const std::vector<PackedPtr>& chains, RowReader& reader);

  // Where row t of the item lies, t = 0 for s_t; `last`: it may be the observation that ends an
  // episode.
  struct Place {
    std::size_t chunk = 0;  // in chunks()
    std::uint32_t row = 0;
  };
  Place place(std::uint64_t t, bool last) const;
  std::span<const PackedPtr> chunks() const { return chunks_; }

  // The stack of an observation column whose newest row is at `place`, to `to`: before the
  // episode's first row stands that row again. False when the chunk is corrupt.
  bool stack(const Place& place, std::size_t column, const RowTarget& target,
             std::uint8_t* to) const;

 private:
  std::span<const PackedPtr> chunks_;
  std::uint64_t first_;  // row of s_t, counted from the first chunk's first one
  RowReader& reader_;
};

}  // namespace troupe::replay
