// Matrices of activations as the kernels want them: items (rows of the batch) lie side by side in
// the lanes of vectors, one panel for every kPanel items. Plain views; whoever holds the Arena owns
// the memory.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <vector>

#include "learners/kernels/vector.hpp"

namespace troupe::learners::kernels {

// Items in a panel: two vectors, so that a tile of six rows fills the registers of AVX2.
inline constexpr std::int64_t kPanel = 2 * kLanes;
// Panels side by side in a tile of the products, where there are as many: two with the 32 registers
// of AVX-512.
#if defined(__AVX512F__)
inline constexpr int kSpan = 2;
#else
inline constexpr int kSpan = 1;
#endif

inline std::int64_t panels_of(std::int64_t items) { return (items + kPanel - 1) / kPanel; }

// Half-open range of panels, rows or whatever the parameter's name says.
struct Range {
  std::int64_t begin = 0, end = 0;
  std::int64_t size() const { return end - begin; }
};

// Part `index` of `parts` nearly equal parts of [0, count).
inline Range part_of(std::int64_t count, std::int64_t index, std::int64_t parts) {
  return {count * index / parts, count * (index + 1) / parts};
}

// A matrix in panels of kPanel columns: element (row, column) at
//   data[column / kPanel * stride + row * kPanel + column % kPanel].
// Activations: row = feature, column = item. Packed weights and transposed activations swap them.
struct Panels {
  float* data = nullptr;
  std::int64_t rows = 0;
  std::int64_t stride = 0;  // floats from panel to panel

  float* panel(std::int64_t index) const { return data + index * stride; }
  float& at(std::int64_t row, std::int64_t column) const {
    return data[column / kPanel * stride + row * kPanel + column % kPanel];
  }
};

// Zeroed memory handed out once, in pieces aligned to 64 bytes, and freed as a whole.
class Arena {
 public:
  float* floats(std::int64_t count);
  // The stride keeps equal rows of neighbouring panels apart in the cache's sets.
  Panels panels(std::int64_t rows, std::int64_t columns);

 private:
  struct Free {
    void operator()(float* memory) const { std::free(memory); }
  };
  std::vector<std::unique_ptr<float, Free>> blocks_;
  float* next_ = nullptr;
  std::int64_t left_ = 0;
};

// Row-major [items, features] into features [0, features) of the panels' rows from `first_row` on;
// lanes past the last item become 0.
void load_items(const float* rows, std::int64_t features, std::int64_t items, const Panels& to,
                std::int64_t first_row, Range panels);

// Rows become columns: `rows` of `from`, at most kPanel, over the items of `panels` become items x
// rows, kPanel floats an item at `to` (columns past the last row become 0).
void transpose(const Panels& from, Range rows, Range panels, float* to);

// A row-major matrix [rows, stride] column by column range: columns [first, first + columns) into
// panels. Writes the panels of `panels`; columns past the last one become 0.
void pack_columns(const float* matrix, std::int64_t stride, std::int64_t first,
                  std::int64_t columns, const Panels& to, Range panels);

}  // namespace troupe::learners::kernels
