// Implements the packed product with vectors of eight floats. This file alone is compiled with
// -ffp-contract=fast so that a * b + c becomes one instruction.
#include "models/inference/packed_linear.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

namespace troupe::models {
namespace {

using Vector = float __attribute__((vector_size(32)));
constexpr int kVectors = 2;  // per panel
static_assert(PackedLinear::kPanel == kVectors * 8);

// Rows x Panels accumulators stay in registers; every sum runs over the inputs in order, so that a
// row's bits do not depend on its neighbours.
template <int Rows, int Panels>
void multiply(const float* packed, std::int64_t inputs, const float* x, std::int64_t x_stride,
              float* y, std::int64_t y_stride) {
  const std::int64_t panel_vectors = (inputs + 1) * kVectors;
  const auto* weights = reinterpret_cast<const Vector*>(packed);
  Vector sums[Rows][Panels][kVectors];
  for (int r = 0; r < Rows; ++r)
    for (int p = 0; p < Panels; ++p)
      for (int v = 0; v < kVectors; ++v) sums[r][p][v] = weights[p * panel_vectors + v];
  for (std::int64_t i = 0; i < inputs; ++i) {
    for (int p = 0; p < Panels; ++p) {
      const Vector* row = weights + p * panel_vectors + (i + 1) * kVectors;
      for (int r = 0; r < Rows; ++r) {
        const float value = x[r * x_stride + i];
        for (int v = 0; v < kVectors; ++v) sums[r][p][v] += value * row[v];
      }
    }
  }
  for (int r = 0; r < Rows; ++r)
    for (int p = 0; p < Panels; ++p)
      std::memcpy(y + r * y_stride + p * PackedLinear::kPanel, sums[r][p], sizeof sums[r][p]);
}

}  // namespace

void PackedLinear::Free::operator()(float* memory) const { std::free(memory); }

PackedLinear::PackedLinear(std::span<const float> weight, std::span<const float> bias,
                           std::int64_t inputs, std::int64_t outputs)
    : inputs_(inputs), outputs_(outputs), panels_((outputs + kPanel - 1) / kPanel) {
  const std::size_t size = static_cast<std::size_t>(panels_ * (inputs + 1) * kPanel);
  packed_.reset(static_cast<float*>(std::aligned_alloc(64, size * sizeof(float))));
  if (!packed_) throw std::bad_alloc();
  std::fill_n(packed_.get(), size, 0.0F);
  for (std::int64_t o = 0; o < outputs; ++o) {
    float* column = packed_.get() + o / kPanel * (inputs + 1) * kPanel + o % kPanel;
    column[0] = bias[static_cast<std::size_t>(o)];
    for (std::int64_t i = 0; i < inputs; ++i)
      column[(i + 1) * kPanel] = weight[static_cast<std::size_t>(o * inputs + i)];
  }
}

void PackedLinear::apply(const float* x, std::int64_t x_stride, float* y, std::int64_t rows) const {
  const std::int64_t panel_size = (inputs_ + 1) * kPanel, stride = output_stride();
  std::int64_t row = 0;
  for (; row + 4 <= rows; row += 4)
    for (std::int64_t p = 0; p < panels_; ++p)
      multiply<4, 1>(packed_.get() + p * panel_size, inputs_, x + row * x_stride, x_stride,
                     y + row * stride + p * kPanel, stride);
  for (; row < rows; ++row) {
    std::int64_t p = 0;
    for (; p + 4 <= panels_; p += 4)
      multiply<1, 4>(packed_.get() + p * panel_size, inputs_, x + row * x_stride, x_stride,
                     y + row * stride + p * kPanel, stride);
    for (; p < panels_; ++p)
      multiply<1, 1>(packed_.get() + p * panel_size, inputs_, x + row * x_stride, x_stride,
                     y + row * stride + p * kPanel, stride);
  }
}

}  // namespace troupe::models
