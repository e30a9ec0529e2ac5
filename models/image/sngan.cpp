#include "models/image/sngan.hpp"

#include <cmath>
#include <string>

#include "models/torch_precompiled.hpp"

namespace troupe::models {
namespace {

constexpr std::int64_t kStart = 4;  // side of the generator's first picture
const double kResidualGain = std::sqrt(2.0), kShortcutGain = 1;

ConvolutionShape convolution(std::int64_t inputs, std::int64_t outputs, std::int64_t kernel,
                             double gain, bool spectral, Resample resample = Resample::kNone) {
  return {.inputs = inputs,
          .outputs = outputs,
          .kernel = kernel,
          .bias = true,
          .spectral = spectral,
          .resample = resample,
          .fill = glorot_uniform(inputs, outputs, kernel * kernel, gain)};
}

// Channels that go into and out of each of the generator's blocks.
std::vector<std::int64_t> generator_widths(const SnGanShape& shape) {
  if (shape.side == 32) return std::vector<std::int64_t>(4, shape.generator_width);
  const std::int64_t w = shape.generator_width;
  return {16 * w, 16 * w, 8 * w, 4 * w, 2 * w, w};
}

}  // namespace

SnGanShape published_sngan(std::int64_t side, std::int64_t classes) {
  SnGanShape shape{.side = side, .classes = classes};
  if (side == 128) shape.generator_width = shape.discriminator_width = 64;
  return shape;
}

Result<void> check(const SnGanShape& shape) {
  const auto refuse = [](const char* what) {
    return fail(ErrorCode::kInvalidArgument, std::string("sngan: ") + what);
  };
  if (shape.side != 32 && shape.side != 128) return refuse("side is neither 32 nor 128");
  if (shape.channels < 1 || shape.noise < 1 || shape.classes < 0)
    return refuse("channels and noise are at least 1, classes at least 0");
  if (shape.generator_width < 1 || shape.discriminator_width < 1)
    return refuse("generator_width and discriminator_width are at least 1");
  return {};
}

Generator::Generator(const SnGanShape& shape) {
  const std::vector<std::int64_t> widths = generator_widths(shape);
  top_ = widths.front();
  input_.emplace(arrays_, "l1",
                 LinearShape{.inputs = shape.noise,
                             .outputs = kStart * kStart * top_,
                             .fill = glorot_uniform(shape.noise, kStart * kStart * top_, 1, 1),
                             .bias_fill = constant(0)});
  for (std::size_t i = 0; i + 1 < widths.size(); ++i) {
    const std::int64_t in = widths[i], out = widths[i + 1];
    const std::string name = "block" + std::to_string(i + 2) + ".";
    BatchNorm first_norm(arrays_, name + "b1", in, 1, shape.classes);
    Convolution first(arrays_, name + "c1",
                      convolution(in, out, 3, kResidualGain, false, Resample::kDouble));
    BatchNorm second_norm(arrays_, name + "b2", out, 1, shape.classes);
    Convolution second(arrays_, name + "c2", convolution(out, out, 3, kResidualGain, false));
    Convolution shortcut(arrays_, name + "c_sc",
                         convolution(in, out, 1, kShortcutGain, false, Resample::kDouble));
    blocks_.push_back({first_norm, first, second_norm, second, shortcut});
  }
  last_norm_.emplace(arrays_, "b", widths.back());
  output_.emplace(arrays_, "l", convolution(widths.back(), shape.channels, 3, 1, false));
}

at::Tensor Generator::forward(const Pass& pass, const at::Tensor& noise,
                              const at::Tensor& labels) const {
  at::Tensor x = (*input_)(pass, noise)
                     .view({noise.size(0), top_, kStart, kStart})
                     .contiguous(at::MemoryFormat::ChannelsLast);
  for (const Block& block : blocks_) {
    at::Tensor h = at::relu(block.first_norm(pass, x, labels));
    h = at::relu(block.second_norm(pass, block.first(pass, h), labels));
    x = block.second(pass, h) + block.shortcut(pass, x);
  }
  return at::tanh((*output_)(pass, at::relu((*last_norm_)(pass, x))));
}

Discriminator::Discriminator(const SnGanShape& shape) {
  const std::int64_t w = shape.discriminator_width;
  struct Plan {
    std::int64_t in, out;
    bool down;
  };
  std::vector<Plan> plans;
  if (shape.side == 32)
    plans = {{shape.channels, w, true}, {w, w, true}, {w, w, false}, {w, w, false}};
  else
    plans = {{shape.channels, w, true}, {w, 2 * w, true},      {2 * w, 4 * w, true},
             {4 * w, 8 * w, true},      {8 * w, 16 * w, true}, {16 * w, 16 * w, false}};
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const auto [in, out, down] = plans[i];
    const std::string name = "block" + std::to_string(i + 1) + ".";
    const std::int64_t hidden = i == 0 ? out : in;
    const Resample resample = down ? Resample::kHalve : Resample::kNone;
    Convolution first(arrays_, name + "c1", convolution(in, hidden, 3, kResidualGain, true));
    Convolution second(arrays_, name + "c2",
                       convolution(hidden, out, 3, kResidualGain, true, resample));
    Block block{first, second, {}, i == 0};
    if (down || in != out)
      block.shortcut.emplace(arrays_, name + "c_sc",
                             convolution(in, out, 1, kShortcutGain, true, resample));
    blocks_.push_back(block);
  }
  const std::int64_t features = plans.back().out;
  score_.emplace(arrays_, "l",
                 LinearShape{.inputs = features,
                             .outputs = 1,
                             .bias = shape.side == 128,
                             .spectral = true,
                             .fill = glorot_uniform(features, 1, 1, 1),
                             .bias_fill = constant(0)});
  if (shape.classes > 0)
    classes_.emplace(arrays_, "l_y", shape.classes, features,
                     glorot_uniform(features, shape.classes, 1, 1), true);
}

at::Tensor Discriminator::apply(const Block& block, const Pass& pass, const at::Tensor& x) const {
  const at::Tensor h = block.first(pass, block.is_first ? x : at::relu(x));
  return block.second(pass, at::relu(h)) + (block.shortcut ? (*block.shortcut)(pass, x) : x);
}

at::Tensor Discriminator::forward(const Pass& pass, const at::Tensor& x,
                                  const at::Tensor& labels) const {
  at::Tensor h = x;
  for (const Block& block : blocks_) h = apply(block, pass, h);
  h = at::relu(h).sum({2, 3});
  at::Tensor scores = (*score_)(pass, h).squeeze(1);
  if (classes_) scores = scores + ((*classes_)(pass, labels) * h).sum(1);
  return scores;
}

at::Tensor discriminator_loss(const at::Tensor& real_scores, const at::Tensor& fake_scores) {
  return at::relu(1 - real_scores).mean() + at::relu(1 + fake_scores).mean();
}

at::Tensor generator_loss(const at::Tensor& fake_scores) { return -fake_scores.mean(); }

}  // namespace troupe::models
