#include "learners/d4pg/fused_network.hpp"

#include <algorithm>
#include <cassert>

namespace troupe::learners {
namespace {

using kernels::Activation;
using kernels::Panels;
using kernels::Range;

// Reads the layer list: each linear layer takes what follows it up to the next one.
std::vector<FusedLayer> fuse(const std::vector<models::DenseLayer>& layers,
                             const models::FlatLayout& layout) {
  using Kind = models::DenseLayer::Kind;
  std::vector<FusedLayer> fused;
  std::size_t segment = 0;
  const auto next_offset = [&] { return layout.segments[segment++].offset; };
  for (const models::DenseLayer& layer : layers) {
    assert(layer.kind == Kind::kLinear || !fused.empty());
    switch (layer.kind) {
      case Kind::kLinear: {
        FusedLayer& next = fused.emplace_back();
        next.inputs = layer.inputs;
        next.outputs = layer.outputs;
        next.weight = next_offset();
        next.bias = next_offset();
        break;
      }
      case Kind::kLayerNorm:
        fused.back().layer_norm = true;
        fused.back().epsilon = layer.epsilon;
        fused.back().scale = next_offset();
        fused.back().shift = next_offset();
        break;
      case Kind::kTanh:
        fused.back().activation = Activation::kTanh;
        break;
      case Kind::kElu:
        fused.back().activation = Activation::kElu;
        break;
      case Kind::kRelu:
        assert(false && "dense_layers() makes no ReLU");
    }
  }
  assert(segment == layout.segments.size());
  return fused;
}

}  // namespace

FusedNetwork::FusedNetwork(const std::vector<models::DenseLayer>& layers,
                           const models::FlatLayout& layout, std::int64_t input_column,
                           kernels::Arena& arena)
    : layers_(fuse(layers, layout)), packed_(layers_.size()), input_column_(input_column) {
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const std::int64_t first = i > 0 ? 0 : input_column_;
    if (first >= 0) packed_[i] = arena.panels(layers_[i].outputs, layers_[i].inputs - first);
  }
}

FusedPass FusedNetwork::make_pass(PassUse use, std::int64_t items, const Panels& input,
                                  const Panels& output, kernels::Arena& arena) const {
  FusedPass pass;
  pass.input = input;
  // Without a gradient a layer's output is needed by the next layer alone.
  Panels turns[2];
  if (use == PassUse::kForward) {
    const auto widest = std::max_element(
        layers_.begin(), layers_.end(),
        [](const FusedLayer& a, const FusedLayer& b) { return a.outputs < b.outputs; });
    for (Panels& turn : turns) turn = arena.panels(widest->outputs, items);
  }
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const FusedLayer& layer = layers_[i];
    FusedPass::Layer& memory = pass.layers.emplace_back();
    const bool is_last = i + 1 == layers_.size();
    if (is_last && output.data != nullptr)
      memory.output = output;
    else if (use == PassUse::kForward)
      memory.output = {turns[i % 2].data, layer.outputs, turns[i % 2].stride};
    else
      memory.output = arena.panels(layer.outputs, items);
    if (layer.layer_norm) {
      memory.norm.normalised =
          use == PassUse::kForward ? memory.output : arena.panels(layer.outputs, items);
      memory.norm.inverse_deviation = arena.floats(kernels::panels_of(items) * kernels::kPanel);
    }
    if (use == PassUse::kForward) continue;
    memory.gradient = arena.panels(layer.outputs, items);
    if (layer.layer_norm) memory.affine_gradient = arena.panels(layer.outputs, items);
  }
  return pass;
}

kernels::LinearParameters FusedNetwork::linear(const FusedLayer& layer,
                                               const float* parameters) const {
  return {parameters + layer.weight, parameters + layer.bias, layer.outputs, layer.inputs};
}

kernels::LayerNormParameters FusedNetwork::norm(const FusedLayer& layer,
                                                const float* parameters) const {
  return {parameters + layer.scale, parameters + layer.shift, layer.outputs, layer.epsilon};
}

void FusedNetwork::pack(const float* parameters, std::int64_t member, std::int64_t members) const {
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    if (packed_[i].data == nullptr) continue;
    const FusedLayer& layer = layers_[i];
    const std::int64_t first = i > 0 ? 0 : input_column_, columns = layer.inputs - first;
    kernels::pack_columns(parameters + layer.weight, layer.inputs, first, columns, packed_[i],
                          kernels::part_of(kernels::panels_of(columns), member, members));
  }
}

void FusedNetwork::forward(const float* parameters, const FusedPass& pass, Range panels) const {
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const FusedLayer& layer = layers_[i];
    const FusedPass::Layer& memory = pass.layers[i];
    if (layer.layer_norm) {
      // Panel by panel, so that LayerNorm finds it near: its layer is the first and has few inputs.
      for (std::int64_t panel = panels.begin; panel < panels.end; ++panel) {
        const Range one{panel, panel + 1};
        kernels::linear_forward(linear(layer, parameters), pass.input_of(i), memory.norm.normalised,
                                Activation::kNone, one);
        kernels::layer_norm_tanh_forward(norm(layer, parameters), memory.norm, memory.output, one);
      }
    } else {
      kernels::linear_forward(linear(layer, parameters), pass.input_of(i), memory.output,
                              layer.activation, panels);
    }
  }
}

void FusedNetwork::backward(const float* parameters, const FusedPass& pass,
                            const Panels& input_gradient, Range panels) const {
  for (std::size_t i = layers_.size() - 1; i > 0; --i) {
    const FusedLayer& below = layers_[i - 1];
    const FusedPass::Layer& memory = pass.layers[i - 1];
    if (below.layer_norm) {
      kernels::linear_backward_input(packed_[i], pass.layers[i].gradient, memory.affine_gradient,
                                     Activation::kNone, {}, panels);
      kernels::layer_norm_tanh_backward(norm(below, parameters), memory.norm, memory.output,
                                        memory.affine_gradient, memory.gradient, panels);
    } else {
      kernels::linear_backward_input(packed_[i], pass.layers[i].gradient, memory.gradient,
                                     below.activation, memory.output, panels);
    }
  }
  if (input_gradient.data != nullptr)
    kernels::linear_backward_input(packed_[0], pass.layers[0].gradient, input_gradient,
                                   Activation::kNone, {}, panels);
}

void FusedNetwork::weight_gradient(const FusedPass& pass, std::int64_t item_panels,
                                   float* transposed, float* gradient, std::int64_t member,
                                   std::int64_t members) const {
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const FusedLayer& layer = layers_[i];
    const FusedPass::Layer& memory = pass.layers[i];
    kernels::linear_backward_weight(memory.gradient, pass.input_of(i), item_panels, transposed,
                                    gradient + layer.weight, gradient + layer.bias, member,
                                    members);
    if (!layer.layer_norm) continue;
    const Range rows = kernels::part_of(layer.outputs, member, members);
    kernels::sum_items(memory.affine_gradient, memory.norm.normalised, item_panels,
                       gradient + layer.scale, rows);
    kernels::sum_items(memory.affine_gradient, {}, item_panels, gradient + layer.shift, rows);
  }
}

}  // namespace troupe::learners
