// From options to the network, and from bytes to what it sees. Private to this folder.
#pragma once

#include <ATen/ATen.h>

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
      : mean_(by_channel(options.mean, channels, 128)),
        scale_(1 / by_channel(options.deviation, channels, 64)) {}

  // u8 [count][side][side][channels] to an NCHW view of floats in the same order: what convolutions
  // like best.
  at::Tensor operator()(const std::uint8_t* pixels, std::int64_t count, std::int64_t side) const {
    const at::Tensor bytes = at::from_blob(const_cast<std::uint8_t*>(pixels),
                                           {count, side, side, mean_.size(1)}, at::kByte)
                                 .permute({0, 3, 1, 2});
    return (bytes.to(at::kFloat) - mean_).mul_(scale_);
  }

 private:
  static at::Tensor by_channel(const std::vector<std::int64_t>& values, std::int64_t channels,
                               float other) {
    const at::Tensor out = at::full({1, channels, 1, 1}, other);
    for (std::size_t i = 0; i < values.size(); ++i)
      out.mutable_data_ptr<float>()[i] = static_cast<float>(values[i]);
    return out;
  }

  at::Tensor mean_, scale_;  // [1, channels, 1, 1]
};

}  // namespace troupe::learners
