// Parameters of any model moved into flat buffers: one for each device and type, so that reducing,
// clipping and publishing are one pass each. Owned by one replica; used by its thread.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace troupe::learners {

// One parameter's place in a flat buffer.
struct FlatSlice {
  std::size_t parameter = 0;  // index among those that were flattened
  std::int64_t offset = 0;    // elements from the buffer's start; slices begin at 64 bytes
  std::int64_t elements = 0;
};

class FlatTensors {
 public:
  // `parameters` are leaves of one device and one floating type; they keep their values, and from
  // here on parameter and gradient are views. `indices` are their places in the caller's list.
  FlatTensors(std::vector<at::Tensor> parameters, const std::vector<std::size_t>& indices);

  const at::Tensor& values() const { return values_; }        // [n], zero between slices
  const at::Tensor& gradients() const { return gradients_; }  // likewise
  const std::vector<FlatSlice>& slices() const { return slices_; }
  const std::vector<at::Tensor>& parameters() const { return parameters_; }

  // Brings gradients back that were put elsewhere, by code that assigned or dropped them or by a
  // backward pass that builds a graph; or that of parameter `i` alone.
  void collect_gradients();
  void collect_gradient(std::size_t i);
  void zero_gradients();

 private:
  at::Tensor view(const at::Tensor& flat, std::size_t i) const;

  std::vector<at::Tensor> parameters_;
  std::vector<FlatSlice> slices_;
  at::Tensor values_, gradients_;
};

// One FlatTensors for each (device, type), in the order of first appearance.
std::vector<FlatTensors> flatten(const std::vector<at::Tensor>& parameters);

}  // namespace troupe::learners
