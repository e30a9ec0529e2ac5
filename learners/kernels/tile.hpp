// The register tile that the products of gemm.hpp are made of: some rows by one or two panels of
// kPanel columns, a chain of fused multiply-adds for each element. Two panels ask for half the
// broadcasts a product, and six rows' addresses stay in registers where twelve do not; one panel
// does for packed weights, which need one address, and for a last odd one. Pure functions; any
// thread.
#pragma once

#include <algorithm>
#include <cstdint>

#include "learners/kernels/panels.hpp"

namespace troupe::learners::kernels {

// Vectors of sums in the largest tile: with those of the right operand and a broadcast they fill
// the registers.
#if defined(__AVX512F__)
inline constexpr int kSums = 24;
#else
inline constexpr int kSums = 12;
#endif

template <int Span>
inline constexpr int kTileRows = kSums / (2 * Span);
// Rows of the tile that spans most panels.
inline constexpr int kUsualRows = kTileRows<kSpan>;

inline constexpr std::int64_t kLine = 16;  // floats of a cache line

// Tiles of nearly equal height over `rows` rows.
template <int Span>
constexpr std::int64_t tiles_of(std::int64_t rows) {
  return (rows + kTileRows<Span> - 1) / kTileRows<Span>;
}

template <int Rows, int Span>
using Tile = Vector[Rows][2 * Span];

// Where a tile's values lie: vector v of row r.
struct Place {
  std::int64_t row_stride = kPanel, panel_stride = 0;
  std::int64_t at(int r, int v) const {
    return r * row_stride + v / 2 * panel_stride + v % 2 * kLanes;
  }
};

// tile[r][v] = function(tile[r][v], r, v).
template <int Rows, int Span, class Function>
inline void change_tile(Tile<Rows, Span>& tile, Function function) {
  for (int r = 0; r < Rows; ++r)
    for (int v = 0; v < 2 * Span; ++v) tile[r][v] = function(tile[r][v], r, v);
}

template <int Rows, int Span>
inline void load_tile(Tile<Rows, Span>& tile, const float* from, const Place& place) {
  change_tile<Rows, Span>(tile, [&](Vector, int r, int v) { return load(from + place.at(r, v)); });
}

template <int Rows, int Span>
inline void store_tile(const Tile<Rows, Span>& tile, float* to, const Place& place) {
  for (int r = 0; r < Rows; ++r)
    for (int v = 0; v < 2 * Span; ++v) store(to + place.at(r, v), tile[r][v]);
}

// Asks for a line that is read soon; any address will do.
inline void fetch(const float* line) { __builtin_prefetch(line); }

// Asks for the place of a tile that is written at the end of what is being computed: the layers'
// results come from the third cache, and a store that misses holds up those behind it.
template <int Rows, int Span>
inline void fetch_tile(float* to, const Place& place) {
  for (int r = 0; r < Rows; ++r)
    for (int s = 0; s < Span; ++s)
      for (std::int64_t at = 0; at < kPanel; at += kLine)
        __builtin_prefetch(to + place.at(r, 2 * s) + at, 1);
}

// tile += left * right: left(r, k) at left[r * left_stride + k] (Transposed: [k * left_stride +
// r]), right in panels of kPanel floats a row, `right_stride` apart.
template <int Rows, int Span, bool Transposed>
inline void add_products(Tile<Rows, Span>& tile, const float* left, std::int64_t left_stride,
                         const float* right, std::int64_t right_stride, std::int64_t depth) {
#pragma GCC unroll 4
  for (std::int64_t k = 0; k < depth; ++k) {
    Vector b[2 * Span];
#pragma GCC unroll 4
    for (int v = 0; v < 2 * Span; ++v)
      b[v] = load(right + k * kPanel + v / 2 * right_stride + v % 2 * kLanes);
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r) {
      const Vector a = broadcast(left[Transposed ? k * left_stride + r : r * left_stride + k]);
#pragma GCC unroll 4
      for (int v = 0; v < 2 * Span; ++v) tile[r][v] = multiply_add(a, b[v], tile[r][v]);
    }
  }
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

// Calls function.template operator()<Rows>() for a run-time number of rows, 1 to Rows.
template <int Rows, class Function>
inline void with_rows(std::int64_t rows, Function&& function) {
  if (rows == Rows) return function.template operator()<Rows>();
  if constexpr (Rows > 1) with_rows<Rows - 1>(rows, function);
}

// Calls function.template operator()<Span>(panel) for pairs of `panels`, where tiles span two, and
// the odd one.
template <class Function>
inline void for_spans(Range panels, Function&& function) {
  std::int64_t panel = panels.begin;
  if constexpr (kSpan == 2)
    for (; panel + 1 < panels.end; panel += 2) function.template operator()<2>(panel);
  for (; panel < panels.end; ++panel) function.template operator()<1>(panel);
}

}  // namespace troupe::learners::kernels
