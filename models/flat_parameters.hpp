// All parameters of one network in one flat tensor, and their gradients in another: clipping,
// reduction, optimizer and publishing are single passes. Owned by one replica; used by its thread.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "models/inference/dense_layers.hpp"

namespace troupe::models {

class FlatParameters {
 public:
  // Zeroed buffers on `device`; on the CPU they are 64-byte aligned. `requires_grad` is false for
  // target networks, which have no gradient buffer.
  FlatParameters(FlatLayout layout, bool requires_grad, at::Device device = at::kCPU,
                 at::ScalarType type = at::kFloat);

  const FlatLayout& layout() const { return layout_; }
  // [layout().size]
  const at::Tensor& values() const { return values_; }
  const at::Tensor& gradient() const { return gradient_; }
  // Views of values() in the order of the segments: leaves whose gradients accumulate in
  // gradient().
  const std::vector<at::Tensor>& parameters() const { return parameters_; }
  // The same views without gradients: for passes that only need derivatives by the input.
  const std::vector<at::Tensor>& constants() const { return constants_; }

 private:
  FlatLayout layout_;
  at::Tensor values_, gradient_;
  std::vector<at::Tensor> parameters_, constants_;
};

// input [B, inputs] -> [B, outputs]. `parameters` in the order of flat_layout(layers).
at::Tensor forward(const std::vector<DenseLayer>& layers, const std::vector<at::Tensor>& parameters,
                   const at::Tensor& input);

}  // namespace troupe::models
