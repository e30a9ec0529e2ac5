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
// Depth of one pass. With AVX2 its rows of a panel (16 KiB) leave half of the first cache free;
// with AVX-512 the second one delivers in time, and sums that stay in registers gain more.
#if defined(__AVX512F__)
constexpr std::int64_t kDepth = 512;
#else
constexpr std::int64_t kDepth = 256;
#endif
// Rows of the left operand that stay in the caches while the panels go by.
constexpr std::int64_t kBlockRows = 96;
constexpr std::int64_t kLine = 16;  // floats of a cache line

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

// Asks for a line that is read soon; any address will do.
inline void fetch(const float* line) { __builtin_prefetch(line); }

// Asks for the place of a tile that is written at the end of what is being computed: the layers'
// results come from the third cache, and a store that misses holds up those behind it.
template <int Rows>
inline void fetch_tile(float* to, std::int64_t stride) {
  for (int r = 0; r < Rows; ++r)
    for (std::int64_t at = 0; at < kPanel; at += kLine) __builtin_prefetch(to + r * stride + at, 1);
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

// add(k, count) for [0, depth) in slices of a line, before each of which the lines of `next` are
// asked for that belong to it: what comes next arrives while this is computed. Null: in one slice.
template <class Fetch, class Add>
inline void add_slices(std::int64_t depth, const float* next, Fetch fetch_slice, Add add) {
  if (next == nullptr) return add(0, depth);
  for (std::int64_t k = 0; k < depth; k += kLine) {
    fetch_slice(next, k);
    add(k, std::min(kLine, depth - k));
  }
}

// Calls function.template operator()<Rows>() for a run-time number of rows, 1 to kTileRows.
template <int Rows = kTileRows, class Function>
inline void with_rows(std::int64_t rows, Function&& function) {
  if (rows == Rows) return function.template operator()<Rows>();
  if constexpr (Rows > 1) with_rows<Rows - 1>(rows, function);
}

// `next`: the weights of the tile that follows, if they are to be fetched.
template <int Rows>
void forward_tile(const LinearParameters& layer, std::int64_t row, Range depth, const float* input,
                  float* output, Activation activation, const float* next) {
  Tile<Rows> tile;
  if (depth.begin == 0) {
    fetch_tile<2 * Rows>(output, kPanel);  // with the next tile's: short rows are done too soon
    for (int r = 0; r < Rows; ++r) tile[r][0] = tile[r][1] = broadcast(layer.bias[row + r]);
  } else {
    load_tile<Rows>(tile, output, kPanel);
  }
  const float* weight = layer.weight + row * layer.inputs + depth.begin;
  add_slices(
      depth.size(), next,
      [&](const float* line, std::int64_t k) {
        for (int r = 0; r < Rows; ++r) fetch(line + r * layer.inputs + k);
      },
      [&](std::int64_t k, std::int64_t count) {
        add_rows<Rows>(tile, weight + k, layer.inputs, input + k * kPanel, count);
      });
  if (depth.end == layer.inputs) {
    if (activation == Activation::kElu)
      change_tile<Rows>(tile, [](Vector x, int, int) { return elu(x); });
    if (activation == Activation::kTanh)
      change_tile<Rows>(tile, [](Vector x, int, int) { return tanh(x); });
  }
  store_tile<Rows>(tile, output, kPanel);
}

// A tile of the product with a packed panel of weights, tile `index` of `tiles` in it. `next`: the
// panel that follows, of which each tile fetches its share.
struct PackedTile {
  const float* weight = nullptr;
  const float* next = nullptr;
  std::int64_t index = 0, tiles = 1;
};

template <int Rows>
void backward_tile(const PackedTile& packed, Range depth, const float* output_gradient,
                   float* input_gradient, bool last, Activation activation,
                   const float* activated) {
  Tile<Rows> tile;
  if (depth.begin == 0) {
    fetch_tile<Rows>(input_gradient, kPanel);
    clear_tile<Rows>(tile);
  } else {
    load_tile<Rows>(tile, input_gradient, kPanel);
  }
  if (last && activation != Activation::kNone)
    for (std::int64_t at = 0; at < Rows * kPanel; at += kLine) fetch(activated + at);
  add_slices(
      depth.size(), packed.next,
      [&](const float* line, std::int64_t k) {
        for (std::int64_t at = packed.index; at < kPanel; at += packed.tiles)
          fetch(line + k * kPanel + at * kLine);
      },
      [&](std::int64_t k, std::int64_t count) {
        add_columns<Rows>(tile, packed.weight + k * kPanel, output_gradient + k * kPanel, count);
      });
  if (last && activation != Activation::kNone) {
    const bool is_elu = activation == Activation::kElu;
    change_tile<Rows>(tile, [&](Vector x, int r, int v) {
      const Vector value = load(activated + r * kPanel + v * kLanes);
      return x * (is_elu ? elu_slope(value) : tanh_slope(value));
    });
  }
  store_tile<Rows>(tile, input_gradient, kPanel);
}

// Adds `item_panels` panels to the result, or begins it with them. Fetches the rows that follow.
template <int Rows>
void weight_tile(const float* output_gradient, std::int64_t stride, const float* input,
                 std::int64_t item_panels, bool begins, float* result, std::int64_t result_stride,
                 std::int64_t width) {
  Tile<Rows> tile;
  float square[Rows * kPanel];
  fetch_tile<Rows>(result, result_stride);
  if (begins) {
    clear_tile<Rows>(tile);
  } else if (width == kPanel) {
    load_tile<Rows>(tile, result, result_stride);
  } else {
    for (int r = 0; r < Rows; ++r)
      std::copy_n(result + r * result_stride, width, square + r * kPanel);
    load_tile<Rows>(tile, square, kPanel);
  }
  for (std::int64_t panel = 0; panel < item_panels; ++panel) {
    const float* rows = output_gradient + panel * stride;
    for (std::int64_t at = 0; at < Rows * kPanel; at += kLine) fetch(rows + Rows * kPanel + at);
    add_rows<Rows>(tile, rows, kPanel, input + panel * kPanel * kPanel, kPanel);
  }
  if (width == kPanel) return store_tile<Rows>(tile, result, result_stride);
  store_tile<Rows>(tile, square, kPanel);
  for (int r = 0; r < Rows; ++r)
    std::copy_n(square + r * kPanel, width, result + r * result_stride);
}

// The columns of one panel of inputs, for `rows`.
void weight_columns(const Panels& output_gradient, const Panels& input, std::int64_t column,
                    std::int64_t item_panels, Range rows, float* transposed, float* result) {
  const std::int64_t tiles = tiles_of(rows.size());
  const std::int64_t width = std::min(kPanel, input.rows - column);
  for (std::int64_t first = 0; first < item_panels; first += kTransposedPanels) {
    const Range items{first, std::min(item_panels, first + kTransposedPanels)};
    transpose(input, {column, column + width}, items, transposed);
    for (std::int64_t tile = 0; tile < tiles; ++tile) {
      const Range part = part_of(rows.size(), tile, tiles);
      // Each tile fetches its share of the panel of columns that follows.
      if (column + kPanel < input.rows)
        for (std::int64_t panel = items.begin; panel < items.end; ++panel)
          for (std::int64_t line = tile; line < kPanel * kPanel / kLine; line += tiles)
            fetch(input.panel(panel) + (column + kPanel) * kPanel + line * kLine);
      const std::int64_t row = rows.begin + part.begin;
      with_rows(part.size(), [&]<int Rows>() {
        weight_tile<Rows>(output_gradient.panel(first) + row * kPanel, output_gradient.stride,
                          transposed, items.size(), first == 0, result + row * input.rows + column,
                          input.rows, width);
      });
    }
  }
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
          // The first panel brings the weights near, the others find them there.
          const float* next = panel == panels.begin && rows.end < layer.outputs
                                  ? layer.weight + rows.end * layer.inputs + k
                                  : nullptr;
          with_rows(rows.size(), [&]<int Rows>() {
            forward_tile<Rows>(layer, rows.begin, depth, in,
                               output.panel(panel) + rows.begin * kPanel, activation, next);
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
          const float* next = panel == panels.begin && column + kPanel < inputs
                                  ? weight + packed_weight.stride
                                  : nullptr;
          const std::int64_t width = std::min(kPanel, last - column), tiles = tiles_of(width);
          for (std::int64_t tile = 0; tile < tiles; ++tile) {
            const Range rows = part_of(width, tile, tiles);
            const std::int64_t at = (column + rows.begin) * kPanel;
            const float* value =
                activation == Activation::kNone ? nullptr : activated.panel(panel) + at;
            with_rows(rows.size(), [&]<int Rows>() {
              backward_tile<Rows>({weight + rows.begin, next, tile, tiles}, depth, gradient,
                                  input_gradient.panel(panel) + at, depth.end == outputs,
                                  activation, value);
            });
          }
        }
      }
    }
  }
}

void linear_backward_weight(const Panels& output_gradient, const Panels& input,
                            std::int64_t item_panels, float* transposed, float* weight_gradient,
                            float* bias_gradient, std::int64_t member, std::int64_t members) {
  // Every panel of columns comes in as many parts of its rows as there are members, who take equal
  // numbers of parts: whole panels where that comes out even.
  const std::int64_t rows = output_gradient.rows, panels = panels_of(input.rows);
  for (std::int64_t part = member * panels; part < (member + 1) * panels;) {
    const std::int64_t panel = part / members, first = part % members;
    const std::int64_t last = std::min(members, (member + 1) * panels - panel * members);
    weight_columns(output_gradient, input, panel * kPanel, item_panels,
                   {rows * first / members, rows * last / members}, transposed, weight_gradient);
    part = panel * members + last;
  }
  sum_items(output_gradient, {}, item_panels, bias_gradient, part_of(rows, member, members));
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
