// Implements layer lists and flat layouts.
#include "models/inference/dense_layers.hpp"

namespace troupe::models {
namespace {

DenseLayer layer(DenseLayer::Kind kind, std::int64_t inputs, std::int64_t outputs,
                 std::string name) {
  return {.kind = kind,
          .inputs = static_cast<std::uint32_t>(inputs),
          .outputs = static_cast<std::uint32_t>(outputs),
          .name = std::move(name)};
}

}  // namespace

void FlatLayout::append(std::string name, std::vector<std::int64_t> shape) {
  constexpr std::int64_t kAlignment = 16;  // floats in a cache line
  Segment segment{.name = std::move(name), .shape = std::move(shape), .offset = size};
  segment.elements = 1;
  for (const std::int64_t extent : segment.shape) segment.elements *= extent;
  size += (segment.elements + kAlignment - 1) / kAlignment * kAlignment;
  segments.push_back(std::move(segment));
}

std::vector<DenseLayer> dense_layers(const DenseNetworkShape& shape) {
  using Kind = DenseLayer::Kind;
  std::vector<DenseLayer> layers;
  std::int64_t width = shape.inputs;
  for (std::size_t i = 0; i < shape.hidden.size(); ++i) {
    const std::string index = std::to_string(i);
    const std::int64_t next = shape.hidden[i];
    layers.push_back(layer(Kind::kLinear, width, next, shape.name + ".linear_" + index));
    const bool normalised = i == 0 && shape.layer_norm;
    if (normalised)
      layers.push_back(layer(Kind::kLayerNorm, next, next, shape.name + ".layer_norm_" + index));
    layers.push_back(layer(normalised ? Kind::kTanh : Kind::kElu, next, next, ""));
    width = next;
  }
  layers.push_back(layer(Kind::kLinear, width, shape.outputs, shape.name + ".output"));
  if (shape.tanh_output) layers.push_back(layer(Kind::kTanh, shape.outputs, shape.outputs, ""));
  return layers;
}

FlatLayout flat_layout(const std::vector<DenseLayer>& layers) {
  FlatLayout layout;
  for (const DenseLayer& entry : layers) {
    const bool linear = entry.kind == DenseLayer::Kind::kLinear;
    if (!linear && entry.kind != DenseLayer::Kind::kLayerNorm) continue;
    std::vector<std::int64_t> weight = {entry.outputs};
    if (linear) weight.push_back(entry.inputs);
    layout.append(entry.name + ".weight", std::move(weight));
    layout.append(entry.name + ".bias", {entry.outputs});
  }
  return layout;
}

}  // namespace troupe::models
