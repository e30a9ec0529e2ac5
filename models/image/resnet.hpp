// Residual networks for classification (He et al. 2016, arXiv:1512.03385), with the stride in a
// bottleneck's 3x3 convolution, and arrays named as torchvision names them.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "envs/spec/result.hpp"
#include "models/image/layers.hpp"

namespace troupe::models {

struct ResNetShape {
  std::int64_t depth = 50;  // 18, 34, 50, 101
  std::int64_t classes = 1000, channels = 3;
  std::int64_t width = 64;  // of the first stage; the published networks have 64
  bool small_stem = false;  // one 3x3 convolution instead of 7x7 with stride 2 and pooling: CIFAR's
  bool zero_gamma = false;  // a block begins as its shortcut (Goyal et al. 2017)
};

class ResNet {
 public:
  // kInvalidArgument, naming the field, for a shape out of range.
  static Result<ResNet> create(const ResNetShape& shape);

  const ArrayList& arrays() const { return arrays_; }
  const ResNetShape& shape() const { return shape_; }
  // Pictures [B, channels, H, W] -> logits [B, classes].
  at::Tensor forward(const Pass& pass, const at::Tensor& x) const;

  // The network in parts that may lie on different devices: the stem, the residual blocks in their
  // order, the classifier. forward is all of them in turn.
  std::size_t parts() const { return blocks_.size() + 2; }
  at::Tensor forward_part(std::size_t part, const Pass& pass, const at::Tensor& x) const;
  // Arrays are declared part by part: which of arrays() are the first of `part`; of parts(), how
  // many there are.
  struct Position {
    std::size_t parameter = 0, buffer = 0;
  };
  Position begin_of(std::size_t part) const { return begins_[part]; }
  // What the classifier sees, [B, features], and what it makes of it: [B, classes].
  at::Tensor features(const Pass& pass, const at::Tensor& x) const;
  at::Tensor classify(const Pass& pass, const at::Tensor& features) const;

 private:
  struct Step {
    Convolution convolution;
    BatchNorm norm;
  };
  struct Block {
    std::vector<Step> steps;  // two 3x3, or 1x1, 3x3, 1x1
    std::optional<Step> shortcut;
  };

  explicit ResNet(const ResNetShape& shape);
  at::Tensor apply(const Block& block, const Pass& pass, const at::Tensor& x) const;
  void begin_part();

  ResNetShape shape_;
  ArrayList arrays_;
  std::optional<Step> stem_;
  std::vector<Block> blocks_;
  std::optional<Linear> classifier_;
  std::vector<Position> begins_;  // [parts() + 1]
};

}  // namespace troupe::models
