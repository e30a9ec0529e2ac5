#include "learners/kernels/panels.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

namespace troupe::learners::kernels {
namespace {

constexpr std::int64_t kLine = 16;              // floats in 64 bytes
constexpr std::int64_t kHugePage = 2 << 20;     // bytes
constexpr std::int64_t kBlock = kHugePage / 4;  // floats

// One kPanel x kPanel square: rows of `from` become columns of `to`, both with kPanel floats a row.
// Squares of 4 in registers, which compilers turn into shuffles.
void transpose_square(const float* from, float* to) {
  using Four = float __attribute__((vector_size(16)));
  const auto four = [](const float* p) {
    Four value;
    std::memcpy(&value, p, sizeof(value));
    return value;
  };
  for (std::int64_t i = 0; i < kPanel; i += 4) {
    for (std::int64_t j = 0; j < kPanel; j += 4) {
      const float* p = from + i * kPanel + j;
      const Four a = four(p), b = four(p + kPanel), c = four(p + 2 * kPanel),
                 d = four(p + 3 * kPanel);
      const Four ab_low = __builtin_shufflevector(a, b, 0, 4, 1, 5);
      const Four ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
      const Four cd_low = __builtin_shufflevector(c, d, 0, 4, 1, 5);
      const Four cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
      const Four columns[4] = {__builtin_shufflevector(ab_low, cd_low, 0, 1, 4, 5),
                               __builtin_shufflevector(ab_low, cd_low, 2, 3, 6, 7),
                               __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5),
                               __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7)};
      for (int k = 0; k < 4; ++k) std::memcpy(to + (j + k) * kPanel + i, &columns[k], sizeof(Four));
    }
  }
}

}  // namespace

float* Arena::floats(std::int64_t count) {
  count = (count + kLine - 1) / kLine * kLine;
  if (count > left_) {
    const std::int64_t size = (count + kBlock - 1) / kBlock * kBlock;
    auto* memory = static_cast<float*>(
        std::aligned_alloc(kHugePage, static_cast<std::size_t>(size) * sizeof(float)));
    if (memory == nullptr) throw std::bad_alloc();
    blocks_.emplace_back(memory);
    // Huge pages spare the address translation of panels that are read in turn; only advice.
    madvise(memory, static_cast<std::size_t>(size) * sizeof(float), MADV_HUGEPAGE);
    std::fill_n(memory, size, 0.0F);
    next_ = memory;
    left_ = size;
  }
  float* result = next_;
  next_ += count;
  left_ -= count;
  return result;
}

Panels Arena::panels(std::int64_t rows, std::int64_t columns) {
  // Seven lines more than a multiple of 64 lines, the sets of a 32 KiB cache: six rows of sixteen
  // panels then spread over all of them.
  const std::int64_t lines = rows * kPanel / kLine;
  const std::int64_t stride = (lines + (71 - lines % 64) % 64) * kLine;
  return {floats(stride * panels_of(columns)), rows, stride};
}

void load_items(const float* rows, std::int64_t features, std::int64_t items, const Panels& to,
                std::int64_t first_row, Range panels) {
  for (std::int64_t panel = panels.begin; panel < panels.end; ++panel) {
    float* out = to.panel(panel) + first_row * kPanel;
    for (std::int64_t lane = 0; lane < kPanel; ++lane) {
      const std::int64_t item = panel * kPanel + lane;
      for (std::int64_t f = 0; f < features; ++f)
        out[f * kPanel + lane] = item < items ? rows[item * features + f] : 0.0F;
    }
  }
}

void transpose(const Panels& from, Range rows, Range panels, float* to) {
  for (std::int64_t panel = panels.begin; panel < panels.end; ++panel, to += kPanel * kPanel) {
    const float* source = from.panel(panel) + rows.begin * kPanel;
    if (rows.size() == kPanel) {
      transpose_square(source, to);
      continue;
    }
    float square[kPanel * kPanel] = {};
    std::copy_n(source, rows.size() * kPanel, square);
    transpose_square(square, to);
  }
}

void pack_columns(const float* matrix, std::int64_t stride, std::int64_t first,
                  std::int64_t columns, const Panels& to, Range panels) {
  // Row by row: a walk down a column would meet the same few cache sets again and again.
  const Range whole{panels.begin, std::min(panels.end, columns / kPanel)};
  const std::int64_t rest = columns - whole.end * kPanel;
  for (std::int64_t row = 0; row < to.rows; ++row) {
    const float* from = matrix + row * stride + first;
    float* out = to.data + row * kPanel;
    for (std::int64_t panel = whole.begin; panel < whole.end; ++panel) {
      store(out + panel * to.stride, load(from + panel * kPanel));
      store(out + panel * to.stride + kLanes, load(from + panel * kPanel + kLanes));
    }
    if (whole.end == panels.end) continue;
    std::copy_n(from + whole.end * kPanel, rest, out + whole.end * to.stride);
    std::fill_n(out + whole.end * to.stride + rest, kPanel - rest, 0.0F);
  }
}

}  // namespace troupe::learners::kernels
