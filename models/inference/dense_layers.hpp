// Layer lists of dense networks and where their arrays lie in one flat float buffer. Plain values,
// torch-free: the learner, its kernels, the inference side and checkpoints all build on these.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/inference/parameter_set.hpp"

namespace troupe::models {

// Hidden layers and output of one network:
//   linear_0, (layer_norm_0, tanh | elu), linear_i, elu, ..., output(, tanh)
struct DenseNetworkShape {
  std::string name;  // prefix of every array: "policy" -> "policy.linear_0.weight"
  std::int64_t inputs = 0;
  std::vector<std::int64_t> hidden;  // at least one
  std::int64_t outputs = 0;
  bool layer_norm = true;    // after the first linear layer, followed by tanh instead of ELU
  bool tanh_output = false;  // policies: actions in [-1, 1]
};

std::vector<DenseLayer> dense_layers(const DenseNetworkShape& shape);

// One array of a flat buffer.
struct Segment {
  std::string name;                 // "policy.linear_0.weight"
  std::vector<std::int64_t> shape;  // weight of a linear layer: [outputs, inputs], row-major
  std::int64_t offset = 0;  // in floats from the buffer's start, a multiple of 16 (64 bytes)
  std::int64_t elements = 0;
};

// Arrays in the order of the layers, weight before bias. Floats between segments are padding: zero
// in parameters and in gradients alike, so that whole-buffer passes (norms, Adam, sums) need no
// segments.
struct FlatLayout {
  std::vector<Segment> segments;
  std::int64_t size = 0;  // floats, a multiple of 16

  // One more array behind the others.
  void append(std::string name, std::vector<std::int64_t> shape);
};

FlatLayout flat_layout(const std::vector<DenseLayer>& layers);

}  // namespace troupe::models
