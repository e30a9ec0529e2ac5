// The architectures: numbers of parameters, and values and gradients against PyTorch's.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "models/image/resnet.hpp"
#include "models/image/sngan.hpp"
#include "models/torch_precompiled.hpp"

namespace troupe::models {
namespace {

// Pseudo-random values in [-scale, scale), as in record_torch.py.
at::Tensor filled(at::IntArrayRef shape, std::uint64_t number, double scale) {
  const at::Tensor values = at::empty(shape, at::kDouble);
  double* to = values.mutable_data_ptr<double>();
  for (std::int64_t i = 0; i < values.numel(); ++i) {
    std::uint64_t x = static_cast<std::uint64_t>(i) + number * 1000003U;
    for (const std::uint64_t multiplier : {6364136223846793005U, 0xff51afd7ed558ccdU}) {
      x = x * multiplier + 1442695040888963407U;
      x ^= (x >> 33) & 0x7fffffffU;
    }
    to[i] = scale * (static_cast<double>(x & 0xffffffffU) / 0x1p31 - 1);
  }
  return values;
}

void fill(const ArrayList& list, const ImageArrays& arrays) {
  for (std::size_t i = 0; i < list.layout().segments.size(); ++i) {
    const Segment& segment = list.layout().segments[i];
    const at::Tensor& parameter = arrays.parameters().constants()[i];
    if (segment.shape.size() == 1)
      parameter.copy_(filled(segment.shape, i, 0.1) + (segment.name.ends_with("bias") ? 0 : 1));
    else
      parameter.copy_(
          filled(segment.shape, i,
                 1.5 / std::sqrt(static_cast<double>(segment.elements / segment.shape[0]))));
  }
}

struct Recorded {
  const char* name;
  std::int64_t parameters;
  double loss;
  std::vector<std::pair<const char*, double>> gradient_norms;
};

// PyTorch 2.11.0 and torchvision 0.26.0 in float64, by record_torch.py.
const std::vector<Recorded>& recorded() {
  static const std::vector<Recorded> all{
      {"resnet18",
       11179077,
       2.2505946204230436,
       {{"conv1.weight", 22.854474812128739},
        {"bn1.weight", 1.2337687700023683},
        {"layer3.0.bn1.weight", 0.32311251096528937},
        {"fc.bias", 0.67346943347860111}}},
      {"resnet34",
       21287237,
       2.3374505558267029,
       {{"conv1.weight", 61.399217233343549},
        {"bn1.weight", 3.0474040623439249},
        {"layer3.0.downsample.1.weight", 0.53933601225194538},
        {"fc.bias", 0.58956155631962748}}},
      {"resnet50",
       23518277,
       2.4074423510360647,
       {{"conv1.weight", 727.36594867602832},
        {"bn1.weight", 27.855821457487863},
        {"layer3.0.bn3.bias", 1.3425880235766019},
        {"fc.bias", 0.69919039671576222}}},
      {"resnet101",
       42510405,
       0.97627026024513619,
       {{"conv1.weight", 3052.8174130569364},
        {"bn1.weight", 140.21088469422355},
        {"layer3.9.bn1.weight", 0.9736136188744593},
        {"fc.bias", 0.19349533954635934}}},
      {"generator32",
       14883,
       0.0017638409193888964,
       {{"l1.weight", 0.044949426506640085},
        {"l1.bias", 0.0067302249005097292},
        {"block3.c2.weight", 0.013521234873563069},
        {"l.bias", 0.0048860119667166052}}},
      {"discriminator32",
       4448,
       14.570096229164406,
       {{"block1.c1.weight", 3.9676503059072457},
        {"block1.c1.bias", 9.9498218375058567},
        {"block2.c_sc.bias", 86.817537611700629},
        {"l_y.weight", 15.780113682043627}}},
  };
  return all;
}

const Recorded& recorded(const std::string& name) {
  for (const Recorded& one : recorded())
    if (one.name == name) return one;
  ADD_FAILURE() << name;
  return recorded().front();
}

void expect_recorded(const std::string& name, const ArrayList& list, const ImageArrays& arrays,
                     const at::Tensor& loss) {
  const Recorded& expected = recorded(name);
  EXPECT_EQ(list.parameter_count(), expected.parameters) << name;
  EXPECT_NEAR(loss.item<double>() / expected.loss, 1, 1e-9) << name;
  loss.backward();
  std::size_t found = 0;
  for (const auto& [array, norm] : expected.gradient_norms)
    for (std::size_t i = 0; i < list.layout().segments.size(); ++i)
      if (list.layout().segments[i].name == array) {
        ++found;
        EXPECT_NEAR(arrays.parameters().parameters()[i].grad().norm().item<double>() / norm, 1,
                    1e-9)
            << name << " " << array;
      }
  EXPECT_EQ(found, expected.gradient_norms.size()) << name;
}

TEST(ResNet, ValuesAndGradientsAreTorchvisions) {
  for (const std::int64_t depth : {18, 34, 50, 101}) {
    const ResNet network = *ResNet::create({.depth = depth, .classes = 5});
    Random random(1);
    ImageArrays arrays(network.arrays(), random, at::kCPU, at::kDouble);
    fill(network.arrays(), arrays);
    const Pass pass{arrays.parameters().parameters(), arrays.buffers(), true};
    const at::Tensor labels = at::tensor({1, 3, 0, 1}, at::kLong);
    const at::Tensor loss =
        at::cross_entropy_loss(network.forward(pass, filled({4, 3, 64, 64}, 99, 1)), labels);
    expect_recorded("resnet" + std::to_string(depth), network.arrays(), arrays, loss);
  }
}

TEST(ResNet, ParameterCountsAreThePublishedOnes) {
  const auto count = [](const ResNetShape& shape) {
    return ResNet::create(shape)->arrays().parameter_count();
  };
  EXPECT_EQ(count({.depth = 18}), 11689512);
  EXPECT_EQ(count({.depth = 34}), 21797672);
  EXPECT_EQ(count({.depth = 50}), 25557032);
  EXPECT_EQ(count({.depth = 101}), 44549160);
  EXPECT_EQ(count({.depth = 18, .classes = 10, .small_stem = true}), 11173962);
  EXPECT_FALSE(ResNet::create({.depth = 20}));
  EXPECT_FALSE(ResNet::create({.depth = 18, .classes = 0}));
}

TEST(ResNet, PartsInTurnAreTheWhole) {
  const ResNet network =
      *ResNet::create({.depth = 18, .classes = 4, .width = 4, .small_stem = true});
  Random random(2);
  ImageArrays arrays(network.arrays(), random);
  const at::Tensor x = filled({3, 3, 16, 16}, 1, 1).to(at::kFloat);
  const Pass pass{arrays.parameters().parameters(), arrays.buffers()};
  at::Tensor by_parts = x;
  for (std::size_t part = 0; part < network.parts(); ++part)
    by_parts = network.forward_part(part, pass, by_parts);
  EXPECT_TRUE(at::equal(by_parts, network.forward(pass, x)));
}

TEST(ResNet, WithZeroGammaABlockBeginsAsItsShortcut) {
  const ResNet network = *ResNet::create(
      {.depth = 18, .classes = 4, .width = 4, .small_stem = true, .zero_gamma = true});
  Random random(2);
  ImageArrays arrays(network.arrays(), random);
  const Pass pass{arrays.parameters().parameters(), arrays.buffers(), true};
  const at::Tensor x = filled({3, 3, 16, 16}, 1, 1).to(at::kFloat);
  const at::Tensor stem = network.forward_part(0, pass, x);
  EXPECT_TRUE(at::equal(network.forward_part(1, pass, stem), stem));  // which is >= 0
}

TEST(SnGan, TheGeneratorsValuesAndGradientsAreTheReferences) {
  SnGanShape shape = published_sngan(32, 3);
  shape.generator_width = 6;
  const Generator generator(shape);
  Random random(1);
  ImageArrays arrays(generator.arrays(), random, at::kCPU, at::kDouble);
  fill(generator.arrays(), arrays);
  const Pass pass{arrays.parameters().parameters(), arrays.buffers(), true};
  const at::Tensor out =
      generator.forward(pass, filled({3, 128}, 99, 1), at::tensor({0, 2, 1}, at::kLong));
  ASSERT_EQ(out.sizes(), (at::IntArrayRef{3, 3, 32, 32}));
  expect_recorded("generator32", generator.arrays(), arrays,
                  (out * filled(out.sizes(), 5, 1)).mean());
}

TEST(SnGan, TheDiscriminatorsValuesAndGradientsAreTheReferences) {
  SnGanShape shape = published_sngan(32, 3);
  shape.discriminator_width = 8;
  const Discriminator discriminator(shape);
  Random random(1);
  ImageArrays arrays(discriminator.arrays(), random, at::kCPU, at::kDouble);
  fill(discriminator.arrays(), arrays);
  for (const ArrayList::Spectral& one : discriminator.arrays().spectral()) {
    const at::Tensor& weight = arrays.parameters().constants()[one.weight];
    for (int i = 0; i < 5000; ++i)
      power_step(weight.reshape({weight.size(0), -1}), arrays.buffers()[one.u],
                 arrays.buffers()[one.v]);
  }
  const Pass pass{arrays.parameters().parameters(), arrays.buffers(), true};
  const at::Tensor scores =
      discriminator.forward(pass, filled({3, 3, 32, 32}, 99, 1), at::tensor({0, 2, 1}, at::kLong));
  expect_recorded("discriminator32", discriminator.arrays(), arrays,
                  discriminator_loss(scores.narrow(0, 0, 2), scores.narrow(0, 2, 1)));
}

// Weights and biases of one convolution.
std::int64_t convolution_count(std::int64_t in, std::int64_t out, std::int64_t kernel) {
  return in * out * kernel * kernel + out;
}

TEST(SnGan, ParameterCountsFollowTheDefinition) {
  const auto generator_block = [](std::int64_t in, std::int64_t out, std::int64_t classes) {
    const std::int64_t tables = std::max<std::int64_t>(1, classes);
    return 2 * tables * in + convolution_count(in, out, 3) + 2 * tables * out +
           convolution_count(out, out, 3) + convolution_count(in, out, 1);
  };
  EXPECT_EQ(
      Generator(published_sngan(32, 0)).arrays().parameter_count(),
      128 * 4096 + 4096 + 3 * generator_block(256, 256, 0) + 512 + convolution_count(256, 3, 3));
  EXPECT_EQ(
      Generator(published_sngan(32, 10)).arrays().parameter_count(),
      128 * 4096 + 4096 + 3 * generator_block(256, 256, 10) + 512 + convolution_count(256, 3, 3));
  EXPECT_EQ(Generator(published_sngan(128, 1000)).arrays().parameter_count(),
            128 * 16384 + 16384 + generator_block(1024, 1024, 1000) +
                generator_block(1024, 512, 1000) + generator_block(512, 256, 1000) +
                generator_block(256, 128, 1000) + generator_block(128, 64, 1000) + 128 +
                convolution_count(64, 3, 3));
  const auto block = [](std::int64_t in, std::int64_t hidden, std::int64_t out, bool projected) {
    return convolution_count(in, hidden, 3) + convolution_count(hidden, out, 3) +
           (projected ? convolution_count(in, out, 1) : 0);
  };
  EXPECT_EQ(Discriminator(published_sngan(32, 10)).arrays().parameter_count(),
            block(3, 128, 128, true) + block(128, 128, 128, true) +
                2 * block(128, 128, 128, false) + 128 + 10 * 128);
  EXPECT_EQ(Discriminator(published_sngan(128, 1000)).arrays().parameter_count(),
            block(3, 64, 64, true) + block(64, 64, 128, true) + block(128, 128, 256, true) +
                block(256, 256, 512, true) + block(512, 512, 1024, true) +
                block(1024, 1024, 1024, false) + 1024 + 1 + 1000 * 1024);
}

TEST(SnGan, PicturesOf128PixelsComeThrough) {
  SnGanShape shape = published_sngan(128, 2);
  shape.generator_width = shape.discriminator_width = 2;
  const Generator generator(shape);
  const Discriminator discriminator(shape);
  Random random(3);
  ImageArrays g(generator.arrays(), random), d(discriminator.arrays(), random);
  const at::Tensor labels = at::tensor({0, 1}, at::kLong);
  const at::Tensor pictures = generator.forward({g.parameters().parameters(), g.buffers(), true},
                                                filled({2, 128}, 1, 1).to(at::kFloat), labels);
  ASSERT_EQ(pictures.sizes(), (at::IntArrayRef{2, 3, 128, 128}));
  EXPECT_LE(pictures.abs().max().item<float>(), 1);
  const at::Tensor scores =
      discriminator.forward({d.parameters().parameters(), d.buffers()}, pictures, labels);
  EXPECT_EQ(scores.sizes(), (at::IntArrayRef{2}));
  EXPECT_TRUE(at::isfinite(scores).all().item<bool>());
}

TEST(SnGan, ShapesOutOfRangeAreRefused) {
  EXPECT_TRUE(check(published_sngan(32, 10)));
  EXPECT_TRUE(check(published_sngan(128, 1000)));
  EXPECT_FALSE(check(published_sngan(64, 10)));
  EXPECT_FALSE(check({.generator_width = 0}));
  EXPECT_FALSE(check({.classes = -1}));
}

}  // namespace
}  // namespace troupe::models
