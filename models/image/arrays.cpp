#include "models/image/arrays.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "models/torch_precompiled.hpp"

namespace troupe::models {
namespace {

constexpr int kFirstSteps = 15;  // of power iteration, as LibTorch takes

at::Tensor drawn(const std::vector<std::int64_t>& shape, const Fill& fill, Random& random) {
  const at::Tensor values = at::empty(shape, at::kDouble);
  double* to = values.mutable_data_ptr<double>();
  for (std::int64_t i = 0; i < values.numel(); ++i) {
    switch (fill.kind) {
      case Fill::Kind::kConstant:
        to[i] = fill.value;
        break;
      case Fill::Kind::kNormal:
        to[i] = fill.value * random.normal();
        break;
      case Fill::Kind::kUniform:
        to[i] = random.uniform(-fill.value, fill.value);
        break;
    }
  }
  return values;
}

}  // namespace

Fill kaiming_normal(std::int64_t outputs, std::int64_t area) {
  return {Fill::Kind::kNormal, std::sqrt(2.0 / static_cast<double>(outputs * area))};
}

Fill glorot_uniform(std::int64_t inputs, std::int64_t outputs, std::int64_t area, double gain) {
  return {Fill::Kind::kUniform,
          gain * std::sqrt(6.0 / static_cast<double>((inputs + outputs) * area))};
}

Fill uniform_by_inputs(std::int64_t inputs) {
  return {Fill::Kind::kUniform, 1 / std::sqrt(static_cast<double>(inputs))};
}

std::size_t ArrayList::parameter(std::string name, std::vector<std::int64_t> shape, Fill fill,
                                 bool decays) {
  layout_.append(std::move(name), std::move(shape));
  fills_.push_back(fill);
  decays_.push_back(decays);
  return fills_.size() - 1;
}

std::size_t ArrayList::buffer(std::string name, std::vector<std::int64_t> shape, Fill fill) {
  buffers_.push_back({std::move(name), std::move(shape), fill});
  return buffers_.size() - 1;
}

std::int64_t ArrayList::parameter_count() const {
  std::int64_t count = 0;
  for (const Segment& segment : layout_.segments) count += segment.elements;
  return count;
}

void ArrayList::initialise(const FlatParameters& parameters, std::vector<at::Tensor>& buffers,
                           Random& random) const {
  for (std::size_t i = 0; i < fills_.size(); ++i)
    parameters.constants()[i].copy_(drawn(layout_.segments[i].shape, fills_[i], random));
  for (std::size_t i = 0; i < buffers_.size(); ++i)
    buffers[i] =
        drawn(buffers_[i].shape, buffers_[i].fill, random).to(parameters.values().options());
  for (const Spectral& one : spectral_) {
    const at::Tensor& weight = parameters.constants()[one.weight];
    for (int i = 0; i < kFirstSteps; ++i)
      power_step(weight.reshape({weight.size(0), -1}), buffers[one.u], buffers[one.v]);
  }
}

void power_step(const at::Tensor& matrix, at::Tensor& u, at::Tensor& v) {
  const auto unit = [](const at::Tensor& vector) {
    return vector / vector.norm().clamp_min(1e-12);
  };
  v = unit(at::mv(matrix.t(), u));
  u = unit(at::mv(matrix, v));
}

ImageArrays::ImageArrays(const ArrayList& list, Random& random, at::Device device,
                         at::ScalarType type)
    : parameters_(list.layout(), true, device, type), buffers_(list.buffers().size()) {
  list.initialise(parameters_, buffers_, random);
}

}  // namespace troupe::models
