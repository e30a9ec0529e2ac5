// A dense network over panels of items, forward and backward, on the kernels of learners/kernels:
// layers in the order of a DenseLayer list, parameters read in place from the flat buffer. A
// FusedNetwork is shared by the members of a team; every call works on the panels or the share it
// is given, so members never write the same memory.
#pragma once

#include <cstdint>
#include <vector>

#include "learners/kernels/gemm.hpp"
#include "learners/kernels/layer_norm.hpp"
#include "learners/kernels/panels.hpp"
#include "models/inference/dense_layers.hpp"

namespace troupe::learners {

// A linear layer with what follows it: ELU, tanh, LayerNorm and tanh, or nothing.
struct FusedLayer {
  std::int64_t inputs = 0, outputs = 0;
  std::int64_t weight = 0, bias = 0;                            // offsets in the flat buffer
  kernels::Activation activation = kernels::Activation::kNone;  // kTanh with layer_norm
  bool layer_norm = false;
  std::int64_t scale = 0, shift = 0;  // offsets of LayerNorm's parameters
  float epsilon = 0;
};

// Memory of one evaluation of a network. What a pass does not need stays empty.
struct FusedPass {
  struct Layer {
    kernels::Panels output;           // activated
    kernels::LayerNormState norm;     // layers with LayerNorm
    kernels::Panels gradient;         // by the linear layer's output
    kernels::Panels affine_gradient;  // by LayerNorm's output, before tanh
  };
  kernels::Panels input;
  std::vector<Layer> layers;

  const kernels::Panels& input_of(std::size_t layer) const {
    return layer == 0 ? input : layers[layer - 1].output;
  }
  // By the network's output before its activation: where backward starts.
  const kernels::Panels& output_gradient() const { return layers.back().gradient; }
};

enum class PassUse : std::uint8_t {
  kForward,         // no gradient
  kInputGradient,   // backward to the input
  kWeightGradient,  // backward to the first layer, and weight gradients
};

class FusedNetwork {
 public:
  // Layers as dense_layers() makes them. Memory comes from `arena`, which must outlive the network.
  // backward() stops at the input columns [input_column, inputs) when input_column >= 0, at the
  // first layer otherwise; such columns are of the input that forward() reads.
  FusedNetwork(const std::vector<models::DenseLayer>& layers, const models::FlatLayout& layout,
               std::int64_t input_column, kernels::Arena& arena);

  const std::vector<FusedLayer>& layers() const { return layers_; }

  // `output`: where the network's outputs go; empty data means memory of the pass's own.
  FusedPass make_pass(PassUse use, std::int64_t items, const kernels::Panels& input,
                      const kernels::Panels& output, kernels::Arena& arena) const;

  // Copies this member's share of the weights into the layout that backward() reads. Once per
  // parameter change, before backward() of any member.
  void pack(const float* parameters, std::int64_t member, std::int64_t members) const;

  void forward(const float* parameters, const FusedPass& pass, kernels::Range panels) const;

  // From pass.output_gradient() to every layer's gradient; also to `input_gradient`, the gradient
  // by the input columns named at construction, unless its data is null.
  void backward(const float* parameters, const FusedPass& pass,
                const kernels::Panels& input_gradient, kernels::Range panels) const;

  // This member's share of the parameters' gradients, summed over `item_panels` panels, into the
  // flat buffer. After backward() of every member. `transposed`: as of linear_backward_weight().
  void weight_gradient(const FusedPass& pass, std::int64_t item_panels, float* transposed,
                       float* gradient, std::int64_t member, std::int64_t members) const;

 private:
  kernels::LinearParameters linear(const FusedLayer& layer, const float* parameters) const;
  kernels::LayerNormParameters norm(const FusedLayer& layer, const float* parameters) const;

  std::vector<FusedLayer> layers_;
  std::vector<kernels::Panels>
      packed_;  // weights, columns by columns; of layer 0 from input_column_
  std::int64_t input_column_ = -1;
};

}  // namespace troupe::learners
