#include "models/image/layers.hpp"

#include <ATen/core/grad_mode.h>

#include <array>

#include "models/torch_precompiled.hpp"

namespace troupe::models {

SpectralNorm::SpectralNorm(ArrayList& arrays, const std::string& name, std::size_t weight,
                           std::int64_t rows, std::int64_t columns)
    : u_(arrays.buffer(name + ".u", {rows}, {Fill::Kind::kNormal, 1})),
      v_(arrays.buffer(name + ".v", {columns}, {Fill::Kind::kNormal, 1})) {
  arrays.spectral({weight, u_, v_});
}

at::Tensor SpectralNorm::operator()(const Pass& pass, const at::Tensor& weight) const {
  const at::Tensor matrix = weight.reshape({weight.size(0), -1});
  if (pass.power_iteration) {
    const at::NoGradGuard without_gradient;
    power_step(matrix, pass.buffers[u_], pass.buffers[v_]);
  }
  return weight / at::dot(pass.buffers[u_], at::mv(matrix, pass.buffers[v_]));
}

Convolution::Convolution(ArrayList& arrays, const std::string& name, const ConvolutionShape& shape)
    : shape_(shape),
      weight_(arrays.parameter(name + ".weight",
                               {shape.outputs, shape.inputs, shape.kernel, shape.kernel},
                               shape.fill, true)) {
  if (shape.bias) bias_ = arrays.parameter(name + ".bias", {shape.outputs}, constant(0), false);
  if (shape.spectral)
    norm_.emplace(arrays, name, weight_, shape.outputs, shape.inputs * shape.area());
}

// oneDNN's AVX2 kernel for weight gradients of 1x1 convolutions writes beyond the weights of other
// numbers of channels than multiples of this (seen with the one in PyTorch 2.11): those
// convolutions are products of matrices.
constexpr std::int64_t kLanes = 8;

// A row of three weights as the four that stride 2 wants: of the means of two neighbouring results,
// and, for the transposed convolution, of inputs that come twice.
using Spreading = std::array<std::array<double, 4>, 3>;
constexpr Spreading kHalving = {{{0.5, 0.5, 0, 0}, {0, 0.5, 0.5, 0}, {0, 0, 0.5, 0.5}}};
constexpr Spreading kDoubling = {{{0, 0, 1, 1}, {0, 1, 1, 0}, {1, 1, 0, 0}}};

// Kernels [a, b, 3, 3] to [a, b, 4, 4], both ways alike.
at::Tensor spread(const at::Tensor& weight, const Spreading& rule) {
  const at::Tensor both = at::empty({9, 16}, at::kDouble);
  double* to = both.mutable_data_ptr<double>();
  for (std::size_t y = 0; y < 3; ++y)
    for (std::size_t x = 0; x < 3; ++x)
      for (std::size_t v = 0; v < 4; ++v)
        for (std::size_t w = 0; w < 4; ++w) *to++ = rule[y][v] * rule[x][w];
  return at::matmul(weight.reshape({-1, 9}), both.to(weight.options()))
      .view({weight.size(0), weight.size(1), 4, 4});
}

at::Tensor Convolution::operator()(const Pass& pass, const at::Tensor& x) const {
  at::Tensor weight = pass.parameters[weight_];
  if (norm_) weight = (*norm_)(pass, weight);
  const at::Tensor bias = bias_ ? pass.parameters[*bias_] : at::Tensor();
  if (shape_.kernel == 1) {
    const at::Tensor out =
        by_pixel(shape_.resample == Resample::kHalve ? halved(x) : x, weight, bias);
    return shape_.resample == Resample::kDouble ? doubled(out) : out;
  }
  switch (shape_.resample) {
    case Resample::kHalve:
      return at::conv2d(x, spread(weight, kHalving), bias, 2, 1);
    case Resample::kDouble:
      return at::conv_transpose2d(x, spread(weight.transpose(0, 1), kDoubling), bias, 2, 1);
    default:
      return at::conv2d(x, weight, bias, shape_.stride, shape_.kernel / 2);
  }
}

at::Tensor Convolution::by_pixel(const at::Tensor& x, const at::Tensor& weight,
                                 const at::Tensor& bias) const {
  if (shape_.inputs % kLanes == 0 && shape_.outputs % kLanes == 0)
    return at::conv2d(x, weight, bias, shape_.stride);
  const at::Tensor taken =
      shape_.stride == 1
          ? x
          : x.slice(2, 0, x.size(2), shape_.stride).slice(3, 0, x.size(3), shape_.stride);
  return at::linear(taken.permute({0, 2, 3, 1}), weight.flatten(1), bias).permute({0, 3, 1, 2});
}

at::Tensor doubled(const at::Tensor& x) {
  return at::upsample_nearest2d(x, {2 * x.size(2), 2 * x.size(3)});
}

at::Tensor halved(const at::Tensor& x) { return at::avg_pool2d(x, 2); }

Linear::Linear(ArrayList& arrays, const std::string& name, const LinearShape& shape)
    : weight_(arrays.parameter(name + ".weight", {shape.outputs, shape.inputs}, shape.fill, true)) {
  if (shape.bias) bias_ = arrays.parameter(name + ".bias", {shape.outputs}, shape.bias_fill, false);
  if (shape.spectral) norm_.emplace(arrays, name, weight_, shape.outputs, shape.inputs);
}

at::Tensor Linear::operator()(const Pass& pass, const at::Tensor& x) const {
  at::Tensor weight = pass.parameters[weight_];
  if (norm_) weight = (*norm_)(pass, weight);
  return at::linear(x, weight, bias_ ? pass.parameters[*bias_] : at::Tensor());
}

Embedding::Embedding(ArrayList& arrays, const std::string& name, std::int64_t classes,
                     std::int64_t width, Fill fill, bool spectral)
    : weight_(arrays.parameter(name + ".weight", {classes, width}, fill, true)) {
  if (spectral) norm_.emplace(arrays, name, weight_, classes, width);
}

at::Tensor Embedding::operator()(const Pass& pass, const at::Tensor& labels) const {
  at::Tensor weight = pass.parameters[weight_];
  if (norm_) weight = (*norm_)(pass, weight);
  return at::embedding(weight, labels);
}

BatchNorm::BatchNorm(ArrayList& arrays, const std::string& name, std::int64_t channels,
                     double scale, std::int64_t classes)
    : classes_(classes) {
  const std::vector<std::int64_t> one{channels}, by_class{classes, channels};
  scale_ = arrays.parameter(name + ".weight", classes > 0 ? by_class : one, constant(scale), false);
  shift_ = arrays.parameter(name + ".bias", classes > 0 ? by_class : one, constant(0), false);
  mean_ = arrays.buffer(name + ".running_mean", one, constant(0));
  variance_ = arrays.buffer(name + ".running_var", one, constant(1));
}

at::Tensor BatchNorm::operator()(const Pass& pass, const at::Tensor& x,
                                 const at::Tensor& labels) const {
  if (classes_ == 0) return normalised(pass, x, pass.parameters[scale_], pass.parameters[shift_]);
  const auto by_item = [&](std::size_t table) {
    return at::embedding(pass.parameters[table], labels).unsqueeze(-1).unsqueeze(-1);
  };
  return normalised(pass, x, {}, {}) * by_item(scale_) + by_item(shift_);
}

at::Tensor BatchNorm::normalised(const Pass& pass, const at::Tensor& x, const at::Tensor& scale,
                                 const at::Tensor& shift) const {
  if (pass.training && pass.sum) return over_replicas(pass, x, scale, shift);
  if (!pass.training)
    return at::batch_norm(x, scale, shift, pass.buffers[mean_], pass.buffers[variance_], false,
                          kMomentum, kEpsilon, false);
  // LibTorch writes the running statistics in place; an earlier graph may hold these.
  pass.buffers[mean_] = pass.buffers[mean_].clone();
  pass.buffers[variance_] = pass.buffers[variance_].clone();
  return at::batch_norm(x, scale, shift, pass.buffers[mean_], pass.buffers[variance_], true,
                        kMomentum, kEpsilon, false);
}

at::Tensor BatchNorm::over_replicas(const Pass& pass, const at::Tensor& x, const at::Tensor& scale,
                                    const at::Tensor& shift) const {
  const std::int64_t channels = x.size(1), count = x.size(2) * x.size(3) * pass.rows;
  const double share = static_cast<double>(x.size(0)) / static_cast<double>(pass.rows);
  // The difference of large moments is no job for 16 bits, and its rounding may pass 0.
  const bool narrow = x.scalar_type() == at::kBFloat16 || x.scalar_type() == at::kHalf;
  const at::Tensor wide = narrow ? x.to(at::kFloat) : x;
  // Means of no rows are no numbers.
  const at::Tensor own =
      x.size(0) > 0
          ? at::stack({wide.mean({0, 2, 3}) * share, wide.square().mean({0, 2, 3}) * share})
          : at::stack({wide.sum({0, 2, 3}), wide.sum({0, 2, 3})});
  const at::Tensor moments = pass.sum(own);
  const at::Tensor mean = moments[0], variance = (moments[1] - mean.square()).clamp_min(0);
  {
    const at::NoGradGuard without_gradient;
    move(pass, mean.detach(), variance.detach(), count);
  }
  const auto spread = [&](const at::Tensor& values) { return values.view({1, channels, 1, 1}); };
  at::Tensor out = (wide - spread(mean)) * spread((variance + kEpsilon).rsqrt());
  if (scale.defined()) out = out * spread(scale) + spread(shift);
  return out;
}

void BatchNorm::move(const Pass& pass, const at::Tensor& mean, const at::Tensor& variance,
                     std::int64_t count) const {
  const double correction =
      count > 1 ? static_cast<double>(count) / static_cast<double>(count - 1) : 1;
  pass.buffers[mean_] = pass.buffers[mean_] * (1 - kMomentum) + mean * kMomentum;
  pass.buffers[variance_] =
      pass.buffers[variance_] * (1 - kMomentum) + variance * (kMomentum * correction);
}

}  // namespace troupe::models
