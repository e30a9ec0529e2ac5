// Copies rows out of packed chunks; keeps the last blocks it unpacked, since the rows of an item
// are neighbours. One thread, and not beyond the life of the chunks it has read.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "replay/packed_chunk.hpp"

namespace troupe::replay {

class RowReader {
 public:
  // Rows [first, first + count) of a column to `to`. False when a packed block is not what it
  // should be; `to` then holds anything. first + count <= chunk.rows(column).
  bool copy(const PackedChunk& chunk, std::size_t column, std::size_t first, std::size_t count,
            std::uint8_t* to);
  // Whether plain rows are written past the caches, for targets larger than these; then the writer
  // ends with stream_fence().
  void stream(bool past_caches) { stream_ = past_caches; }
  // Forgets what it has unpacked, before the chunks may go.
  void clear();

 private:
  // A frame stack and the one after it lie in two blocks, or three.
  static constexpr std::size_t kKept = 4;
  struct Block {
    const PackedChunk* chunk = nullptr;
    std::size_t column = 0, index = 0;
    std::vector<std::uint8_t> rows;
  };
  const std::uint8_t* block(const PackedChunk& chunk, std::size_t column,
                            const PackedChunk::ColumnData& data, std::size_t index);

  std::array<Block, kKept> blocks_;
  std::size_t next_ = 0;  // to be overwritten
  bool stream_ = false;
};

// The calling thread's own one, so that its buffers stay; cleared.
RowReader& thread_row_reader();

}  // namespace troupe::replay
