// Implements flat parameters and the forward pass over them.
#include "models/flat_parameters.hpp"

#include "models/aligned_floats.hpp"
#include "models/torch_precompiled.hpp"

namespace troupe::models {
namespace {

at::Tensor slice(const at::Tensor& flat, const Segment& segment) {
  return flat.narrow(0, segment.offset, segment.elements).view(segment.shape);
}

at::Tensor zeros(std::int64_t size, const at::TensorOptions& options) {
  if (!options.device().is_cpu() || options.dtype() != at::kFloat)
    return at::zeros({size}, options);
  const auto memory = std::make_shared<AlignedFloats>(static_cast<std::size_t>(size));
  return at::from_blob(
      memory->data(), {size}, [memory](void*) {}, options.device(at::kCPU));  // cpu:0 as cpu
}

}  // namespace

FlatParameters::FlatParameters(FlatLayout layout, bool requires_grad, at::Device device,
                               at::ScalarType type)
    : layout_(std::move(layout)) {
  const at::TensorOptions options = at::TensorOptions().device(device).dtype(type);
  values_ = zeros(layout_.size, options);
  if (requires_grad) gradient_ = zeros(layout_.size, options);
  for (const Segment& segment : layout_.segments) {
    const at::Tensor view = slice(values_, segment);
    constants_.push_back(view);
    at::Tensor& leaf = parameters_.emplace_back(view.detach());
    if (!requires_grad) continue;
    leaf.set_requires_grad(true);
    leaf.mutable_grad() = slice(gradient_, segment);
  }
}

at::Tensor forward(const std::vector<DenseLayer>& layers, const std::vector<at::Tensor>& parameters,
                   const at::Tensor& input) {
  at::Tensor x = input;
  std::size_t next = 0;
  for (const DenseLayer& layer : layers) {
    switch (layer.kind) {
      case DenseLayer::Kind::kLinear:
        x = at::linear(x, parameters[next], parameters[next + 1]);
        next += 2;
        break;
      case DenseLayer::Kind::kLayerNorm:
        x = at::layer_norm(x, {layer.outputs}, parameters[next], parameters[next + 1],
                           layer.epsilon);
        next += 2;
        break;
      case DenseLayer::Kind::kTanh:
        x = at::tanh(x);
        break;
      case DenseLayer::Kind::kElu:
        x = at::elu(x);
        break;
      case DenseLayer::Kind::kRelu:
        x = at::relu(x);
        break;
    }
  }
  return x;
}

}  // namespace troupe::models
