// Implements flat buffers.
#include "learners/replicas/flat_tensors.hpp"

#include <c10/core/GradMode.h>

#include "models/torch_precompiled.hpp"

namespace troupe::learners {

FlatTensors::FlatTensors(std::vector<at::Tensor> parameters,
                         const std::vector<std::size_t>& indices)
    : parameters_(std::move(parameters)) {
  const c10::NoGradGuard no_grad;
  const at::TensorOptions options = parameters_[0].options().requires_grad(false);
  const std::int64_t line = 64 / static_cast<std::int64_t>(parameters_[0].element_size());
  std::int64_t size = 0;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    slices_.push_back({indices[i], size, parameters_[i].numel()});
    size += (parameters_[i].numel() + line - 1) / line * line;
  }
  values_ = at::zeros({size}, options);
  gradients_ = at::zeros({size}, options);
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    at::Tensor& parameter = parameters_[i];
    const at::Tensor value = view(values_, i), gradient = view(gradients_, i);
    value.copy_(parameter);
    parameter.set_data(value);
    if (parameter.grad().defined()) gradient.copy_(parameter.grad());
    parameter.mutable_grad() = gradient;
  }
}

at::Tensor FlatTensors::view(const at::Tensor& flat, std::size_t i) const {
  const FlatSlice& slice = slices_[i];
  return flat.narrow(0, slice.offset, slice.elements).view(parameters_[i].sizes());
}

void FlatTensors::collect_gradients() {
  for (std::size_t i = 0; i < parameters_.size(); ++i) collect_gradient(i);
}

void FlatTensors::collect_gradient(std::size_t i) {
  const c10::NoGradGuard no_grad;
  at::Tensor& gradient = parameters_[i].mutable_grad();
  const at::Tensor home = view(gradients_, i);
  if (gradient.defined() && gradient.const_data_ptr() == home.const_data_ptr() &&
      gradient.is_contiguous())
    return;
  if (gradient.defined())
    home.copy_(gradient);
  else
    home.zero_();
  gradient = home;
}

void FlatTensors::zero_gradients() {
  const c10::NoGradGuard no_grad;
  gradients_.zero_();
  // Anew, as a backward pass that builds a graph leaves one on the gradient.
  for (std::size_t i = 0; i < parameters_.size(); ++i)
    parameters_[i].mutable_grad() = view(gradients_, i);
}

std::vector<FlatTensors> flatten(const std::vector<at::Tensor>& parameters) {
  struct Group {
    at::Device device;
    at::ScalarType type;
    std::vector<at::Tensor> tensors;
    std::vector<std::size_t> indices;
  };
  std::vector<Group> groups;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const at::Tensor& tensor = parameters[i];
    std::size_t found = 0;
    while (found < groups.size() &&
           (groups[found].device != tensor.device() || groups[found].type != tensor.scalar_type()))
      ++found;
    if (found == groups.size()) groups.push_back({tensor.device(), tensor.scalar_type(), {}, {}});
    groups[found].tensors.push_back(tensor);
    groups[found].indices.push_back(i);
  }
  std::vector<FlatTensors> flat;
  for (const Group& group : groups) flat.emplace_back(group.tensors, group.indices);
  return flat;
}

}  // namespace troupe::learners
