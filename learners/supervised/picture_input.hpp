// From options to the network, and from bytes to what it sees. Private to this folder.
#pragma once

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <vector>

#include "learners/supervised/options.hpp"
#include "models/image/resnet.hpp"

namespace troupe::learners {

inline models::ResNetShape shape_of(const ClassifierOptions& options, const PictureSpec& pictures) {
  return {.depth = options.depth,
          .classes = pictures.classes,
          .channels = pictures.channels,
          .width = options.width,
          .small_stem = options.small_stem,
          .zero_gamma = options.zero_gamma};
}

class PictureInput {
 public:
  PictureInput(const ClassifierOptions& options, std::int64_t channels)
      : channels_(channels),
        mean_(repeated(options.mean, channels, 128)),
        scale_(repeated(options.deviation, channels, 64)) {
    for (float& value : scale_) value = 1 / value;
  }

  // u8 [count][side][side][channels] to an NCHW view of floats in the same order: what convolutions
  // like best.
  at::Tensor operator()(const std::uint8_t* pixels, std::int64_t count, std::int64_t side) const {
    const at::Tensor out = at::empty({count, side, side, channels_}, at::kFloat);
    auto* to = out.mutable_data_ptr<float>();
    const std::int64_t picture = side * side * channels_;
    at::parallel_for(0, count, 1, [&](std::int64_t begin, std::int64_t end) {
      normalise(pixels + begin * picture, to + begin * picture, (end - begin) * picture);
    });
    return out.permute({0, 3, 1, 2});
  }

 private:
  static constexpr std::int64_t kPixels = 16;  // at a time

  // Values by channel as they stand in so many pixels; `other` where none are given.
  static std::vector<float> repeated(const std::vector<std::int64_t>& values, std::int64_t channels,
                                     float other) {
    std::vector<float> out(static_cast<std::size_t>(kPixels * channels), other);
    for (std::size_t i = 0; i < out.size() && !values.empty(); ++i)
      out[i] = static_cast<float>(values[i % values.size()]);
    return out;
  }

  void normalise(const std::uint8_t* from, float* to, std::int64_t count) const {
    const auto period = static_cast<std::int64_t>(mean_.size());
    const float *mean = mean_.data(), *scale = scale_.data();
    for (std::int64_t done = 0; done < count; done += period) {
      const std::int64_t here = std::min(period, count - done);
      for (std::int64_t i = 0; i < here; ++i)
        to[done + i] = (static_cast<float>(from[done + i]) - mean[i]) * scale[i];
    }
  }

  std::int64_t channels_;
  std::vector<float> mean_, scale_;  // [kPixels][channels]
};

}  // namespace troupe::learners
