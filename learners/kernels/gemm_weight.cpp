// The gradient by the weights, and sums over items.
#include "learners/kernels/gemm.hpp"
#include "learners/kernels/tile.hpp"

namespace troupe::learners::kernels {
namespace {

constexpr std::int64_t kTransposedPanel = kTransposedPanels * kPanel * kPanel;

// Adds `item_panels` panels to the result, or begins it with them. Fetches the rows that follow.
// `width`: columns of the result, fewer than the span's in a single panel alone.
template <int Rows, int Span>
void weight_tile(const float* output_gradient, std::int64_t stride, const float* input,
                 std::int64_t item_panels, bool begins, float* result, std::int64_t result_stride,
                 std::int64_t width) {
  Tile<Rows, Span> tile;
  float square[Rows * kPanel];
  const Place place{result_stride, kPanel};
  const bool whole = Span > 1 || width == kPanel;
  fetch_tile<Rows, Span>(result, place);
  if (begins) {
    change_tile<Rows, Span>(tile, [](Vector, int, int) { return Vector{}; });
  } else if (whole) {
    load_tile<Rows, Span>(tile, result, place);
  } else if constexpr (Span == 1) {
    for (int r = 0; r < Rows; ++r)
      std::copy_n(result + r * result_stride, width, square + r * kPanel);
    load_tile<Rows, Span>(tile, square, {});
  }
  for (std::int64_t panel = 0; panel < item_panels; ++panel) {
    const float* rows = output_gradient + panel * stride;
    for (std::int64_t at = 0; at < Rows * kPanel; at += kLine) fetch(rows + Rows * kPanel + at);
    add_products<Rows, Span, false>(tile, rows, kPanel, input + panel * kPanel * kPanel,
                                    kTransposedPanel, kPanel);
  }
  if (whole) return store_tile<Rows, Span>(tile, result, place);
  if constexpr (Span == 1) {
    store_tile<Rows, Span>(tile, square, {});
    for (int r = 0; r < Rows; ++r)
      std::copy_n(square + r * kPanel, width, result + r * result_stride);
  }
}

// The columns of Span panels of inputs, for `rows`.
template <int Span>
void weight_columns(const Panels& output_gradient, const Panels& input, std::int64_t column,
                    std::int64_t item_panels, Range rows, float* transposed, float* result) {
  constexpr std::int64_t kColumns = Span * kPanel;
  const std::int64_t tiles = tiles_of<Span>(rows.size());
  const std::int64_t width = std::min(kColumns, input.rows - column);
  for (std::int64_t first = 0; first < item_panels; first += kTransposedPanels) {
    const Range items{first, std::min(item_panels, first + kTransposedPanels)};
    for (std::int64_t at = 0; at < width; at += kPanel)
      transpose(input, {column + at, column + std::min(width, at + kPanel)}, items,
                transposed + at / kPanel * kTransposedPanel);
    for (std::int64_t tile = 0; tile < tiles; ++tile) {
      const Range part = part_of(rows.size(), tile, tiles);
      const std::int64_t row = rows.begin + part.begin;
      with_rows<kTileRows<Span>>(part.size(), [&]<int Rows>() {
        weight_tile<Rows, Span>(output_gradient.panel(first) + row * kPanel, output_gradient.stride,
                                transposed, items.size(), first == 0,
                                result + row * input.rows + column, input.rows, width);
      });
    }
  }
}

}  // namespace

void linear_backward_weight(const Panels& output_gradient, const Panels& input,
                            std::int64_t item_panels, float* transposed, float* weight_gradient,
                            float* bias_gradient, std::int64_t member, std::int64_t members) {
  // Every panel of columns comes in as many parts of its rows as there are members, who take equal
  // numbers of parts: whole panels where that comes out even.
  const std::int64_t rows = output_gradient.rows, panels = panels_of(input.rows);
  const std::int64_t whole = input.rows / kPanel;
  const std::int64_t end = (member + 1) * panels;
  for (std::int64_t part = member * panels; part < end;) {
    const std::int64_t panel = part / members, first = part % members;
    if constexpr (kSpan == 2)
      if (first == 0 && panel + 2 <= whole && part + 2 * members <= end) {
        weight_columns<2>(output_gradient, input, panel * kPanel, item_panels, {0, rows},
                          transposed, weight_gradient);
        part += 2 * members;
        continue;
      }
    const std::int64_t last = std::min(members, end - panel * members);
    weight_columns<1>(output_gradient, input, panel * kPanel, item_panels,
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
