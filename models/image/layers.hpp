// Layers of image models. Each declares its arrays when it is made and evaluates them in a Pass;
// inputs are [B, C, H, W] unless stated. Plain values; a layer may be used by any number of passes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "models/image/arrays.hpp"

namespace troupe::models {

// What is done to a picture's height and width beside a convolution.
enum class Resample : std::uint8_t {
  kNone,
  kHalve,   // means of 2 x 2 pixels of the result; even extents only
  kDouble,  // each pixel of the input four times
};

struct ConvolutionShape {
  std::int64_t inputs = 0, outputs = 0, kernel = 3, stride = 1;
  bool bias = false;
  bool spectral = false;                // divide the weight by its largest singular value
  Resample resample = Resample::kNone;  // kernel 1 or 3, stride 1
  Fill fill{};

  std::int64_t area() const { return kernel * kernel; }
};

// W / sigma(W) by power iteration on the weight as a matrix [outputs, everything else] (Miyato et
// al. 2018, arXiv:1802.05957): v = W^T u, u = W v, both to length 1, sigma = u^T W v. u and v move
// only in passes with power_iteration; the gradient goes through W and sigma, not through them.
// They are drawn with the parameters, so that a model can be evaluated before it is trained and all
// replicas begin with the same.
class SpectralNorm {
 public:
  // Of the array `weight`, a matrix [rows, columns] when all extents but the first are joined.
  SpectralNorm(ArrayList& arrays, const std::string& name, std::size_t weight, std::int64_t rows,
               std::int64_t columns);
  at::Tensor operator()(const Pass& pass, const at::Tensor& weight) const;

 private:
  std::size_t u_, v_;
};

// Padding kernel / 2: stride 1 keeps height and width. Cross-correlation, as everywhere.
//
// With Resample, a 3x3 kernel and the means or copies of pixels are one linear map, a 4x4 kernel of
// stride 2: 16 products where both in turn take 36. A 1x1 kernel sees the smaller picture, which
// comes to the same.
class Convolution {
 public:
  Convolution(ArrayList& arrays, const std::string& name, const ConvolutionShape& shape);
  at::Tensor operator()(const Pass& pass, const at::Tensor& x) const;

 private:
  at::Tensor by_pixel(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) const;

  ConvolutionShape shape_;
  std::size_t weight_ = 0;
  std::optional<std::size_t> bias_;
  std::optional<SpectralNorm> norm_;
};

// Each pixel four times, [B, C, H, W] to [B, C, 2 H, 2 W], and the means of 2 x 2.
at::Tensor doubled(const at::Tensor& x);
at::Tensor halved(const at::Tensor& x);

struct LinearShape {
  std::int64_t inputs = 0, outputs = 0;
  bool bias = true, spectral = false;
  Fill fill{}, bias_fill{};
};

// [B, inputs] -> [B, outputs].
class Linear {
 public:
  Linear(ArrayList& arrays, const std::string& name, const LinearShape& shape);
  at::Tensor operator()(const Pass& pass, const at::Tensor& x) const;

 private:
  std::size_t weight_ = 0;
  std::optional<std::size_t> bias_;
  std::optional<SpectralNorm> norm_;
};

// Labels [B] (i64) -> rows [B, width] of a table.
class Embedding {
 public:
  Embedding(ArrayList& arrays, const std::string& name, std::int64_t classes, std::int64_t width,
            Fill fill, bool spectral);
  at::Tensor operator()(const Pass& pass, const at::Tensor& labels) const;

 private:
  std::size_t weight_ = 0;
  std::optional<SpectralNorm> norm_;
};

// Statistics of a pass in training are those of the batch, of this replica or, with Pass::sum, of
// all (mean = sum of [mean x rows / all rows], variance = the same of squares - mean^2; a replica
// may have no row); running ones move by `kMomentum` towards them, with the variance's n / (n - 1),
// and serve evaluation.
class BatchNorm {
 public:
  static constexpr double kMomentum = 0.1, kEpsilon = 1e-5;

  // `classes` > 0: scale and shift by class (de Vries et al. 2017), tables [classes, channels].
  BatchNorm(ArrayList& arrays, const std::string& name, std::int64_t channels, double scale = 1,
            std::int64_t classes = 0);
  // `labels` [B] (i64) where there are classes.
  at::Tensor operator()(const Pass& pass, const at::Tensor& x, const at::Tensor& labels = {}) const;

 private:
  at::Tensor normalised(const Pass& pass, const at::Tensor& x, const at::Tensor& scale,
                        const at::Tensor& shift) const;
  at::Tensor over_replicas(const Pass& pass, const at::Tensor& x, const at::Tensor& scale,
                           const at::Tensor& shift) const;
  void move(const Pass& pass, const at::Tensor& mean, const at::Tensor& variance,
            std::int64_t count) const;

  std::int64_t classes_;
  std::size_t scale_, shift_, mean_, variance_;
};

}  // namespace troupe::models
