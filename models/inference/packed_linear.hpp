// y = x W^T + b for a few rows, with weights packed for streaming: the inner product of policies.
// Immutable after construction; any number of threads may call apply on their own rows.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

namespace troupe::models {

// Written by hand instead of on Eigen's product because that allocates its packing buffers in every
// call and sums in an order that depends on the number of rows.
class PackedLinear {
 public:
  // weight [outputs, inputs] row-major, bias [outputs].
  PackedLinear(std::span<const float> weight, std::span<const float> bias, std::int64_t inputs,
               std::int64_t outputs);

  std::int64_t inputs() const { return inputs_; }
  std::int64_t outputs() const { return outputs_; }
  // Distance in floats between rows of y; the floats after `outputs` are zero-weight results.
  std::int64_t output_stride() const { return panels_ * kPanel; }

  // x [rows, inputs] with row distance x_stride; y [rows, output_stride()]. Must not overlap.
  void apply(const float* x, std::int64_t x_stride, float* y, std::int64_t rows) const;

  static constexpr std::int64_t kPanel = 16;  // outputs side by side

 private:
  struct Free {
    void operator()(float* memory) const;
  };
  std::int64_t inputs_, outputs_, panels_;
  // [panels][inputs + 1][kPanel]; the first row of a panel is its bias.
  std::unique_ptr<float[], Free> packed_;
};

}  // namespace troupe::models
