// The forward product and the gradient by the inputs.
#include "learners/kernels/gemm.hpp"

#include "learners/kernels/tile.hpp"

namespace troupe::learners::kernels {
namespace {

// Depth of one pass. With AVX2 its rows of a panel (16 KiB) leave half of the first cache free;
// with AVX-512 the second one delivers in time, and sums that stay in registers gain more.
#if defined(__AVX512F__)
constexpr std::int64_t kDepth = 512;
#else
constexpr std::int64_t kDepth = 256;
#endif
// Rows of the left operand that stay in the caches while the panels go by.
constexpr std::int64_t kBlockRows = 96;

// `next`: the weights of the tile that follows, if they are to be fetched.
template <int Rows, int Span>
void forward_tile(const LinearParameters& layer, std::int64_t row, Range depth, const Panels& input,
                  const Panels& output, std::int64_t panel, Activation activation,
                  const float* next) {
  Tile<Rows, Span> tile;
  float* result = output.panel(panel) + row * kPanel;
  const Place place{.panel_stride = output.stride};
  if (depth.begin == 0) {
    fetch_tile<2 * Rows, Span>(result,
                               place);  // with the next tile's: short rows are done too soon
    change_tile<Rows, Span>(tile,
                            [&](Vector, int r, int) { return broadcast(layer.bias[row + r]); });
  } else {
    load_tile<Rows, Span>(tile, result, place);
  }
  const float* weight = layer.weight + row * layer.inputs + depth.begin;
  const float* right = input.panel(panel) + depth.begin * kPanel;
  add_slices(
      depth.size(), next,
      [&](const float* line, std::int64_t k) {
        for (int r = 0; r < Rows; ++r) fetch(line + r * layer.inputs + k);
      },
      [&](std::int64_t k, std::int64_t count) {
        add_products<Rows, Span, false>(tile, weight + k, layer.inputs, right + k * kPanel,
                                        input.stride, count);
      });
  if (depth.end == layer.inputs) {
    if (activation == Activation::kElu)
      change_tile<Rows, Span>(tile, [](Vector x, int, int) { return elu(x); });
    if (activation == Activation::kTanh)
      change_tile<Rows, Span>(tile, [](Vector x, int, int) { return tanh(x); });
  }
  store_tile<Rows, Span>(tile, result, place);
}

// A tile of the product with a packed panel of weights, tile `index` of `tiles` in it. `next`: the
// panel that follows, of which each tile fetches its share.
struct PackedTile {
  const float* weight = nullptr;
  const float* next = nullptr;
  std::int64_t index = 0, tiles = 1;
};

// For rows from `row` on of panel `panel`.
template <int Rows>
void backward_tile(const PackedTile& packed, Range depth, const Panels& output_gradient,
                   const Panels& input_gradient, std::int64_t row, std::int64_t panel,
                   Activation activation, const Panels& activated) {
  Tile<Rows, 1> tile;
  float* result = input_gradient.panel(panel) + row * kPanel;
  const Place place;
  if (depth.begin == 0) {
    fetch_tile<Rows, 1>(result, place);
    change_tile<Rows, 1>(tile, [](Vector, int, int) { return Vector{}; });
  } else {
    load_tile<Rows, 1>(tile, result, place);
  }
  const bool slopes = depth.end == output_gradient.rows && activation != Activation::kNone;
  const float* value = slopes ? activated.panel(panel) + row * kPanel : nullptr;
  if (slopes)
    for (std::int64_t at = 0; at < Rows * kPanel; at += kLine) fetch(value + at);
  const float* right = output_gradient.panel(panel) + depth.begin * kPanel;
  add_slices(
      depth.size(), packed.next,
      [&](const float* line, std::int64_t k) {
        for (std::int64_t at = packed.index; at < kPanel; at += packed.tiles)
          fetch(line + k * kPanel + at * kLine);
      },
      [&](std::int64_t k, std::int64_t count) {
        add_products<Rows, 1, true>(tile, packed.weight + k * kPanel, kPanel, right + k * kPanel, 0,
                                    count);
      });
  if (slopes) {
    const bool is_elu = activation == Activation::kElu;
    change_tile<Rows, 1>(tile, [&](Vector x, int r, int v) {
      const Vector y = load(value + place.at(r, v));
      return x * (is_elu ? elu_slope(y) : tanh_slope(y));
    });
  }
  store_tile<Rows, 1>(tile, result, place);
}

}  // namespace

void linear_forward(const LinearParameters& layer, const Panels& input, const Panels& output,
                    Activation activation, Range panels) {
  // Blocks end where tiles of the usual height over all rows do.
  const std::int64_t all = tiles_of<kSpan>(layer.outputs), step = kBlockRows / kUsualRows;
  for (std::int64_t first = 0; first < all; first += step) {
    const std::int64_t begin = part_of(layer.outputs, first, all).begin;
    const std::int64_t end = part_of(layer.outputs, std::min(all, first + step) - 1, all).end;
    for (std::int64_t k = 0; k < layer.inputs; k += kDepth) {
      const Range depth{k, std::min(layer.inputs, k + kDepth)};
      for_spans(panels, [&]<int Span>(std::int64_t panel) {
        const std::int64_t tiles = tiles_of<Span>(end - begin);
        for (std::int64_t tile = 0; tile < tiles; ++tile) {
          const Range rows = part_of(end - begin, tile, tiles);
          const std::int64_t row = begin + rows.begin, next_row = begin + rows.end;
          // The first panel brings the weights near, the others find them there.
          const float* next = panel == panels.begin && next_row < layer.outputs
                                  ? layer.weight + next_row * layer.inputs + k
                                  : nullptr;
          with_rows<kTileRows<Span>>(rows.size(), [&]<int Rows>() {
            forward_tile<Rows, Span>(layer, row, depth, input, output, panel, activation, next);
          });
        }
      });
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
        for (std::int64_t column = first; column < last; column += kPanel) {
          const float* weight = packed_weight.panel(column / kPanel) + k * kPanel;
          const float* next = panel == panels.begin && column + kPanel < inputs
                                  ? weight + packed_weight.stride
                                  : nullptr;
          const std::int64_t width = std::min(kPanel, last - column);
          const std::int64_t tiles = tiles_of<1>(width);
          for (std::int64_t tile = 0; tile < tiles; ++tile) {
            const Range rows = part_of(width, tile, tiles);
            with_rows<kTileRows<1>>(rows.size(), [&]<int Rows>() {
              backward_tile<Rows>({weight + rows.begin, next, tile, tiles}, depth, output_gradient,
                                  input_gradient, column + rows.begin, panel, activation,
                                  activated);
            });
          }
        }
      }
    }
  }
}

}  // namespace troupe::learners::kernels
