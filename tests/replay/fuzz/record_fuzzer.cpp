// libFuzzer target: whatever the bytes, a packed chunk is refused, or every one of its rows can be
// asked for and it is written as it was read.
#include <algorithm>
#include <cstdlib>
#include <vector>

#include "replay/row_reader.hpp"
#include "tests/replay/fuzz/subject.hpp"

using namespace troupe::replay;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  for (const ColumnCompression& packing : {fuzz::packing(), ColumnCompression{}}) {
    const ChunkLayout& layout = ChunkLayout::of(fuzz::signature(), packing);
    const auto chunk = PackedChunk::parse({data, size}, layout);
    if (!chunk) continue;
    std::vector<std::uint8_t> again;
    (*chunk)->append_head(again);
    again.insert(again.end(), (*chunk)->payload().begin(), (*chunk)->payload().end());
    if (!std::equal(again.begin(), again.end(), data, data + size)) std::abort();
    RowReader reader;
    for (std::size_t column = 0; column < layout.columns.size(); ++column) {
      // Packed rows may be any number of times more than their bytes.
      const std::size_t rows = std::min<std::size_t>((*chunk)->rows(column), 2000);
      std::vector<std::uint8_t> all(rows * layout.columns[column].row_bytes);
      const bool whole = reader.copy(**chunk, column, 0, rows, all.data());
      std::vector<std::uint8_t> one(layout.columns[column].row_bytes);
      for (std::size_t row = 0; row < rows; row += 1 + row / 3)
        if (reader.copy(**chunk, column, row, 1, one.data()) && whole &&
            !std::equal(one.begin(), one.end(),
                        all.begin() + static_cast<std::ptrdiff_t>(row * one.size())))
          std::abort();
    }
  }
  return 0;
}
