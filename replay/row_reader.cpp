// Plain columns are one copy; packed ones go block by block.
#include "replay/row_reader.hpp"

#include <algorithm>
#include <cstring>

#include "replay/stream_copy.hpp"

namespace troupe::replay {
namespace {

// Shorter rows share lines with their neighbours, which are best put together in the cache.
constexpr std::size_t kWorthStreaming = 1024;

std::span<const std::uint8_t> packed_block(const PackedChunk::ColumnData& data, std::size_t index) {
  const std::uint32_t begin = index == 0 ? 0 : data.ends[index - 1];
  return data.data.subspan(begin, data.ends[index] - begin);
}

}  // namespace

bool RowReader::copy(const PackedChunk& chunk, std::size_t column, std::size_t first,
                     std::size_t count, std::uint8_t* to) {
  const ColumnLayout& layout = chunk.layout().columns[column];
  const PackedChunk::ColumnData data = chunk.column(column);
  const std::size_t row = layout.row_bytes;
  if (!layout.packed()) {
    const std::uint8_t* from = data.data.data() + first * row;
    if (stream_ && count * row >= kWorthStreaming)
      stream_copy(to, from, count * row);
    else
      std::memcpy(to, from, count * row);
    return true;
  }
  const std::size_t rows = chunk.rows(column);
  while (count > 0) {
    const std::size_t index = first / layout.block_rows, begin = index * layout.block_rows;
    const std::size_t in_block = std::min<std::size_t>(layout.block_rows, rows - begin);
    const std::size_t taken = std::min(count, begin + in_block - first);
    if (taken == in_block && in_block > 1) {  // straight to where it goes; one row may be shared
      if (!decompress(layout.compression, packed_block(data, index), {to, in_block * row}))
        return false;
    } else {
      const std::uint8_t* unpacked = block(chunk, column, data, index);
      if (unpacked == nullptr) return false;
      std::memcpy(to, unpacked + (first - begin) * row, taken * row);
    }
    first += taken;
    count -= taken;
    to += taken * row;
  }
  return true;
}

const std::uint8_t* RowReader::block(const PackedChunk& chunk, std::size_t column,
                                     const PackedChunk::ColumnData& data, std::size_t index) {
  for (const Block& kept : blocks_)
    if (kept.chunk == &chunk && kept.column == column && kept.index == index)
      return kept.rows.data();
  Block& block = blocks_[next_];
  next_ = (next_ + 1) % kKept;
  const ColumnLayout& layout = chunk.layout().columns[column];
  const std::size_t rows =
      std::min<std::size_t>(layout.block_rows, chunk.rows(column) - index * layout.block_rows);
  block.chunk = nullptr;
  block.rows.resize(rows * layout.row_bytes);
  if (!decompress(layout.compression, packed_block(data, index), block.rows)) return nullptr;
  block.chunk = &chunk;
  block.column = column;
  block.index = index;
  return block.rows.data();
}

void RowReader::clear() {
  for (Block& block : blocks_) block.chunk = nullptr;
  stream_ = false;
}

RowReader& thread_row_reader() {
  thread_local RowReader reader;
  reader.clear();
  return reader;
}

}  // namespace troupe::replay
