#include "models/image/resnet.hpp"

#include <array>
#include <map>
#include <string>
#include <utility>

#include "models/torch_precompiled.hpp"

namespace troupe::models {
namespace {

struct Plan {
  std::array<int, 4> blocks;
  bool bottleneck;
};

const std::map<std::int64_t, Plan>& plans() {
  static const std::map<std::int64_t, Plan> known{{18, {{2, 2, 2, 2}, false}},
                                                  {34, {{3, 4, 6, 3}, false}},
                                                  {50, {{3, 4, 6, 3}, true}},
                                                  {101, {{3, 4, 23, 3}, true}}};
  return known;
}

ConvolutionShape convolution(std::int64_t inputs, std::int64_t outputs, std::int64_t kernel,
                             std::int64_t stride) {
  return {.inputs = inputs,
          .outputs = outputs,
          .kernel = kernel,
          .stride = stride,
          .fill = kaiming_normal(outputs, kernel * kernel)};
}

}  // namespace

Result<ResNet> ResNet::create(const ResNetShape& shape) {
  const auto refuse = [](const std::string& what) {
    return fail(ErrorCode::kInvalidArgument, "resnet: " + what);
  };
  if (!plans().contains(shape.depth))
    return refuse("depth is " + std::to_string(shape.depth) + ", not 18, 34, 50 or 101");
  if (shape.classes < 1 || shape.channels < 1 || shape.width < 1)
    return refuse("classes, channels and width are at least 1");
  return ResNet(shape);
}

void ResNet::begin_part() {
  begins_.push_back({arrays_.layout().segments.size(), arrays_.buffers().size()});
}

ResNet::ResNet(const ResNetShape& shape) : shape_(shape) {
  const Plan& plan = plans().at(shape.depth);
  const ConvolutionShape stem = shape.small_stem ? convolution(shape.channels, shape.width, 3, 1)
                                                 : convolution(shape.channels, shape.width, 7, 2);
  begin_part();
  Convolution first(arrays_, "conv1", stem);
  stem_ = Step{first, BatchNorm(arrays_, "bn1", shape.width)};

  std::int64_t inputs = shape.width;
  for (std::size_t stage = 0; stage < plan.blocks.size(); ++stage) {
    const std::int64_t width = shape.width << stage, outputs = plan.bottleneck ? 4 * width : width;
    for (int index = 0; index < plan.blocks[stage]; ++index) {
      begin_part();
      const std::string name =
          "layer" + std::to_string(stage + 1) + "." + std::to_string(index) + ".";
      const std::int64_t stride = stage > 0 && index == 0 ? 2 : 1;
      std::vector<ConvolutionShape> shapes;
      if (plan.bottleneck)
        shapes = {convolution(inputs, width, 1, 1), convolution(width, width, 3, stride),
                  convolution(width, outputs, 1, 1)};
      else
        shapes = {convolution(inputs, outputs, 3, stride), convolution(outputs, outputs, 3, 1)};
      Block block;
      for (std::size_t i = 0; i < shapes.size(); ++i) {
        const bool last = i + 1 == shapes.size();
        Convolution step(arrays_, name + "conv" + std::to_string(i + 1), shapes[i]);
        block.steps.push_back(
            {step, BatchNorm(arrays_, name + "bn" + std::to_string(i + 1), shapes[i].outputs,
                             last && shape.zero_gamma ? 0 : 1)});
      }
      if (stride != 1 || inputs != outputs) {
        Convolution projection(arrays_, name + "downsample.0",
                               convolution(inputs, outputs, 1, stride));
        block.shortcut = Step{projection, BatchNorm(arrays_, name + "downsample.1", outputs)};
      }
      blocks_.push_back(std::move(block));
      inputs = outputs;
    }
  }
  begin_part();
  const Fill fill = uniform_by_inputs(inputs);
  classifier_.emplace(
      arrays_, "fc",
      LinearShape{.inputs = inputs, .outputs = shape.classes, .fill = fill, .bias_fill = fill});
  begin_part();
}

at::Tensor ResNet::apply(const Block& block, const Pass& pass, const at::Tensor& x) const {
  at::Tensor out = x;
  for (std::size_t i = 0; i < block.steps.size(); ++i) {
    out = block.steps[i].norm(pass, block.steps[i].convolution(pass, out));
    if (i + 1 < block.steps.size()) out = at::relu(out);
  }
  const at::Tensor around =
      block.shortcut ? block.shortcut->norm(pass, block.shortcut->convolution(pass, x)) : x;
  return at::relu(out + around);
}

at::Tensor ResNet::forward_part(std::size_t part, const Pass& pass, const at::Tensor& x) const {
  if (part == 0) {
    const at::Tensor out = at::relu(stem_->norm(pass, stem_->convolution(pass, x)));
    return shape_.small_stem ? out : at::max_pool2d(out, 3, 2, 1);
  }
  if (part <= blocks_.size()) return apply(blocks_[part - 1], pass, x);
  return classify(pass, x.mean({2, 3}));
}

at::Tensor ResNet::features(const Pass& pass, const at::Tensor& x) const {
  at::Tensor out = x;
  for (std::size_t part = 0; part + 1 < parts(); ++part) out = forward_part(part, pass, out);
  return out.mean({2, 3});
}

at::Tensor ResNet::classify(const Pass& pass, const at::Tensor& features) const {
  return (*classifier_)(pass, features);
}

at::Tensor ResNet::forward(const Pass& pass, const at::Tensor& x) const {
  return classify(pass, features(pass, x));
}

}  // namespace troupe::models
