#include "learners/kernels/gemm.hpp"

#include <algorithm>
#include <cstring>

namespace troupe::learners::kernels {
namespace {

// Rows of the largest tile: its sums (two vectors a row), two vectors of the right operand and a
// broadcast fill the vector registers.
#if defined(__AVX512F__)
constexpr int kTileRows = 12;
#else
constexpr int kTileRows = 6;
#endif
// Depth of one pass: kDepth rows of a panel (16 KiB with AVX2) leave half of the first cache free.
constexpr std::int64_t kDepth = 256;
// Rows of the left operand that stay in the caches while the panels go by.
constexpr std::int64_t kBlockRows = 96;

// Tiles of nearly equal height over `rows` rows.
std::int64_t tiles_of(std::int64_t rows) { return (rows + kTileRows - 1) / kTileRows; }

template <int Rows>
using Tile = Vector[Rows][2];

template <int Rows>
inline void load_tile(Tile<Rows>& tile, const float* from, std::int64_t stride) {
  for (int r = 0; r < Rows; ++r) {
    tile[r][0] = load(from + r * stride);
    tile[r][1] = load(from + r * stride + kLanes);
  }
}

template <int Rows>
inline void store_tile(const Tile<Rows>& tile, float* to, std::int64_t stride) {
  for (int r = 0; r < Rows; ++r) {
    store(to + r * stride, tile[r][0]);
    store(to + r * stride + kLanes, tile[r][1]);
  }
}

template <int Rows>
inline void clear_tile(Tile<Rows>& tile) {
  for (int r = 0; r < Rows; ++r) tile[r][0] = tile[r][1] = Vector{};
}

// tile += left * right, left row-major with `left_stride` floats a row.
template <int Rows>
inline void add_rows(Tile<Rows>& tile, const float* left, std::int64_t left_stride,
                     const float* right, std::int64_t depth) {
#pragma GCC unroll 4
  for (std::int64_t k = 0; k < depth; ++k) {
    const Vector b0 = load(right + k * kPanel), b1 = load(right + k * kPanel + kLanes);
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r) {
      const Vector a = broadcast(left[r * left_stride + k]);
      tile[r][0] = multiply_add(a, b0, tile[r][0]);
      tile[r][1] = multiply_add(a, b1, tile[r][1]);
    }
  }
}

// tile += left^T * right, left with kPanel floats a row.
template <int Rows>
inline void add_columns(Tile<Rows>& tile, const float* left, const float* right,
                        std::int64_t depth) {
#pragma GCC unroll 4
  for (std::int64_t k = 0; k < depth; ++k) {
    const Vector b0 = load(right + k * kPanel), b1 = load(right + k * kPanel + kLanes);
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r) {
      const Vector a = broadcast(left[k * kPanel + r]);
      tile[r][0] = multiply_add(a, b0, tile[r][0]);
      tile[r][1] = multiply_add(a, b1, tile[r][1]);
    }
  }
}

template <int Rows, class Function>
inline void change_tile(Tile<Rows>& tile, Function function) {
  for (int r = 0; r < Rows; ++r)
    for (int v = 0; v < 2; ++v) tile[r][v] = function(tile[r][v], r, v);
}

// Calls function.template operator()<Rows>() for a run-time number of rows, 1 to kTileRows.
template <int Rows = kTileRows, class Function>
inline void with_rows(std::int64_t rows, Function&& function) {
  if (rows == Rows) return function.template operator()<Rows>();
  if constexpr (Rows > 1) with_rows<Rows - 1>(rows, function);
}

template <int Rows>
void forward_tile(const LinearParameters& layer, std::int64_t row, Range depth, const float* input,
                  float* output, Activation activation) {
  Tile<Rows> tile;
  if (depth.begin == 0) {
    for (int r = 0; r < Rows; ++r) tile[r][0] = tile[r][1] = broadcast(layer.bias[row + r]);
  } else {
    load_tile<Rows>(tile, output, kPanel);
  }
  add_rows<Rows>(tile, layer.weight + row * layer.inputs + depth.begin, layer.inputs, input,
                 depth.size());
  if (depth.end == layer.inputs) {
    if (activation == Activation::kElu)
      change_tile<Rows>(tile, [](Vector x, int, int) { return elu(x); });
    if (activation == Activation::kTanh)
      change_tile<Rows>(tile, [](Vector x, int, int) { return tanh(x); });
  }
  store_tile<Rows>(tile, output, kPanel);
}

template <int Rows>
void backward_tile(const float* weight, Range depth, const float* output_gradient,
                   float* input_gradient, bool last, Activation activation,
                   const float* activated) {
  Tile<Rows> tile;
  if (depth.begin == 0)
    clear_tile<Rows>(tile);
  else
    load_tile<Rows>(tile, input_gradient, kPanel);
  add_columns<Rows>(tile, weight, output_gradient, depth.size());
  if (last && activation != Activation::kNone) {
    const bool is_elu = activation == Activation::kElu;
    change_tile<Rows>(tile, [&](Vector x, int r, int v) {
      const Vector value = load(activated + r * kPanel + v * kLanes);
      return x * (is_elu ? elu_slope(value) : tanh_slope(value));
    });
  }
  store_tile<Rows>(tile, input_gradient, kPanel);
}

template <int Rows>
void weight_tile(const float* output_gradient, std::int64_t stride, const float* input,
                 std::int64_t item_panels, float* result, std::int64_t result_stride,
                 std::int64_t width) {
  Tile<Rows> tile;
  clear_tile<Rows>(tile);
  for (std::int64_t panel = 0; panel < item_panels; ++panel)
    add_rows<Rows>(tile, output_gradient + panel * stride, kPanel, input + panel * kPanel * kPanel,
                   kPanel);
  if (width == kPanel) return store_tile<Rows>(tile, result, result_stride);
  float square[Rows * kPanel];
  store_tile<Rows>(tile, square, kPanel);
  for (int r = 0; r < Rows; ++r)
    std::copy_n(square + r * kPanel, width, result + r * result_stride);
}

}  // namespace

void linear_forward(const LinearParameters& layer, const Panels& input, const Panels& output,
                    Activation activation, Range panels) {
  const std::int64_t tiles = tiles_of(layer.outputs);
  const std::int64_t block = kBlockRows / kTileRows;
  for (std::int64_t first = 0; first < tiles; first += block) {
    const std::int64_t last = std::min(tiles, first + block);
    for (std::int64_t k = 0; k < layer.inputs; k += kDepth) {
      const Range depth{k, std::min(layer.inputs, k + kDepth)};
      for (std::int64_t panel = panels.begin; panel < panels.end; ++panel) {
        const float* in = input.panel(panel) + k * kPanel;
        for (std::int64_t tile = first; tile < last; ++tile) {
          const Range rows = part_of(layer.outputs, tile, tiles);
          with_rows(rows.size(), [&]<int Rows>() {
            forward_tile<Rows>(layer, rows.begin, depth, in,
                               output.panel(panel) + rows.begin * kPanel, activation);
          });
        }
      }
    }
  }
}

void linear_backward_input(const Panels& packed_weight, const Panels& output_gradient,
                           const Panels& input_gradient, Activation activation,
                           const Panels& activated, Range panels) {
  const std::int64_t outputs = packed_weight.rows, inputs = input_gradient.rows;
  for (std::int64_t first = 0; first < inputs; first += kBlockRows) {
    const std::int64_t last = std::min(inputs, first + kBlockRows);
    for (std::int64_t k = 0; k < outputs; k += kDepth) {
      const Range depth{k, std::min(outputs, k + kDepth)};
      for (std::int64_t panel = panels.begin; panel < panels.end; ++panel) {
        const float* gradient = output_gradient.panel(panel) + k * kPanel;
        for (std::int64_t column = first; column < last; column += kPanel) {
          const float* weight = packed_weight.panel(column / kPanel) + k * kPanel;
          const std::int64_t width = std::min(kPanel, last - column), tiles = tiles_of(width);
          for (std::int64_t tile = 0; tile < tiles; ++tile) {
            const Range rows = part_of(width, tile, tiles);
            const std::int64_t at = (column + rows.begin) * kPanel;
            const float* value =
                activation == Activation::kNone ? nullptr : activated.panel(panel) + at;
            with_rows(rows.size(), [&]<int Rows>() {
              backward_tile<Rows>(weight + rows.begin, depth, gradient,
                                  input_gradient.panel(panel) + at, depth.end == outputs,
                                  activation, value);
            });
          }
        }
      }
    }
  }
}

void linear_backward_weight(const Panels& output_gradient, const Panels& transposed_input,
                            std::int64_t inputs, std::int64_t item_panels, float* weight_gradient,
                            float* bias_gradient, Range rows) {
  const std::int64_t tiles = tiles_of(rows.size());
  const std::int64_t block = kBlockRows / kTileRows;
  for (std::int64_t first = 0; first < tiles; first += block) {
    const std::int64_t last = std::min(tiles, first + block);
    for (std::int64_t column = 0; column < inputs; column += kPanel) {
      for (std::int64_t tile = first; tile < last; ++tile) {
        const Range part = part_of(rows.size(), tile, tiles);
        const std::int64_t row = rows.begin + part.begin;
        with_rows(part.size(), [&]<int Rows>() {
          weight_tile<Rows>(output_gradient.data + row * kPanel, output_gradient.stride,
                            transposed_input.panel(column / kPanel), item_panels,
                            weight_gradient + row * inputs + column, inputs,
                            std::min(kPanel, inputs - column));
        });
      }
    }
  }
  sum_items(output_gradient, {}, item_panels, bias_gradient, rows);
}

void sum_items(const Panels& a, const Panels& b, std::int64_t item_panels, float* result,
               Range rows) {
  for (std::int64_t row = rows.begin; row < rows.end; ++row) {
    Vector low{}, high{};
    for (std::int64_t panel = 0; panel < item_panels; ++panel) {
      const float* x = a.panel(panel) + row * kPanel;
      if (b.data == nullptr) {
        low += load(x);
        high += load(x + kLanes);
      } else {
        const float* y = b.panel(panel) + row * kPanel;
        low = multiply_add(load(x), load(y), low);
        high = multiply_add(load(x + kLanes), load(y + kLanes), high);
      }
    }
    result[row] = sum(low + high);
  }
}

}  // namespace troupe::learners::kernels
