// Stacks are read newest first: their older rows may lie in earlier chunks.
#include "replay/item_rows.hpp"

#include <algorithm>
#include <cstring>

namespace troupe::replay {

ItemRows::ItemRows(const SampledItem& item, const std::vector<PackedPtr>& chains, RowReader& reader)
    : chunks_(std::span(chains).subspan(item.chain, item.chain_size)),
      first_(std::uint64_t{item.first_row} + item.lead),
      reader_(reader) {}

ItemRows::Place ItemRows::place(std::uint64_t t, bool last) const {
  std::uint64_t row = first_ + t;
  std::size_t chunk = 0;
  for (; chunk + 1 < chunks_.size(); ++chunk) {
    const std::uint64_t rows = chunks_[chunk]->steps();
    if (row < rows || (last && row == rows && chunks_[chunk]->ends())) break;
    row -= rows;
  }
  return {chunk, static_cast<std::uint32_t>(row)};
}

bool ItemRows::stack(const Place& place, std::size_t column, const RowTarget& target,
                     std::uint8_t* to) const {
  const std::size_t bytes = target.row_bytes;
  const PackedChunk& newest = *chunks_[place.chunk];
  // The usual case: all of it in one chunk.
  if (place.row + 1 >= target.stack)
    return reader_.copy(newest, column, place.row + 1 - target.stack, target.stack, to);
  const std::uint64_t in_episode = std::uint64_t{newest.first_step()} + place.row;
  std::size_t chunk = place.chunk;
  std::uint64_t row = place.row;
  std::uint32_t missing = target.stack;  // still to be written, up to to[missing]
  // Rows of the episode, as many as there are.
  for (std::uint64_t left = std::min<std::uint64_t>(target.stack, in_episode + 1); left > 0;) {
    const std::uint64_t taken = std::min(left, row + 1);
    missing -= static_cast<std::uint32_t>(taken);
    if (!reader_.copy(*chunks_[chunk], column, row + 1 - taken, taken, to + missing * bytes))
      return false;
    left -= taken;
    if (left == 0 || chunk == 0) break;
    row = chunks_[--chunk]->steps() - 1;
  }
  for (std::uint32_t i = 0; i < missing; ++i)
    std::memcpy(to + i * bytes, to + missing * bytes, bytes);
  return true;
}

}  // namespace troupe::replay
