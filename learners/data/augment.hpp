// Random and fixed cuts, flips and colours of pictures: the transforms that the field's recipes
// name. All randomness of a sample comes from one Random, so that (seed, epoch, position) fixes it
// wherever it is computed. Pure functions; any thread.
#pragma once

#include <cstdint>
#include <string>

#include "envs/spec/options.hpp"
#include "envs/spec/random.hpp"
#include "envs/spec/result.hpp"
#include "learners/data/decode.hpp"
#include "learners/data/image.hpp"

namespace troupe::learners::data {

struct AugmentOptions {
  std::int64_t size = 224;  // side of the square that comes out
  std::string cut = "random_resized";
  double scale_min = 0.08, scale_max = 1;         // of random_resized: share of the area
  double ratio_min = 3. / 4, ratio_max = 4. / 3;  // width over height
  std::int64_t padding = 4;                       // of pad_crop, in pixels, black
  double flip = 0.5;
  double brightness = 0, contrast = 0, saturation = 0;
  std::int64_t evaluation_resize = 256;  // shorter side before the centre cut; 0: as `size`
  bool fast_decode = false;
};

template <class Visitor>
void describe(Visitor& visitor, AugmentOptions& options) {
  visitor.field("size", options.size, between(1, 4096), "Side of the square pictures, in pixels.");
  visitor.choice("cut", options.cut, {"random_resized", "pad_crop", "none"},
                 "How a training picture is cut: a random part resized (Inception's), a random "
                 "square of the padded picture (CIFAR's), or as for evaluation.");
  visitor.field("scale_min", options.scale_min, between(0.001, 1),
                "Smallest share of the area that random_resized takes.");
  visitor.field("scale_max", options.scale_max, between(0.001, 1), "Largest share.");
  visitor.field("ratio_min", options.ratio_min, between(0.01, 100),
                "Smallest width over height of that part.");
  visitor.field("ratio_max", options.ratio_max, between(0.01, 100), "Largest width over height.");
  visitor.field("padding", options.padding, between(0, 1024),
                "Black pixels that pad_crop adds on each side.");
  visitor.field("flip", options.flip, between(0, 1), "Probability of a mirrored training picture.");
  visitor.field("brightness", options.brightness, between(0, 1),
                "Brightness of a training picture is multiplied by 1 - x to 1 + x.");
  visitor.field("contrast", options.contrast, between(0, 1), "Contrast likewise.");
  visitor.field("saturation", options.saturation, between(0, 1), "Saturation likewise.");
  visitor.field("evaluation_resize", options.evaluation_resize, between(0, 8192),
                "Shorter side of an evaluation picture before its centre is cut; 0: `size`.");
  visitor.field("fast_decode", options.fast_decode,
                "Decode a large JPEG at a half, quarter or eighth of its size: other pixels, less "
                "time.");
}

// kInvalidArgument, naming the option, for ranges that are empty or cuts larger than the picture.
Result<void> check(const AugmentOptions& options);

// A picture of size x size pixels for training. Draws from `random` in a fixed order.
Result<Image> training_picture(std::span<const std::uint8_t> encoded, std::string_view name,
                               int channels, const AugmentOptions& options, Random& random);
Result<Image> training_picture(const Image& image, const AugmentOptions& options, Random& random);
// ... and for evaluation: resized to evaluation_resize, the centre cut out.
Result<Image> evaluation_picture(std::span<const std::uint8_t> encoded, std::string_view name,
                                 int channels, const AugmentOptions& options);
Result<Image> evaluation_picture(const Image& image, const AugmentOptions& options);

// What the above are made of.
Region random_resized_region(int width, int height, const AugmentOptions& options, Random& random);
Region centre_region(int width, int height, const AugmentOptions& options);
void mirror(Image& image);
// Brightness, contrast and saturation by factors drawn from the options' ranges, in a random order:
// blends with black, with the mean grey, with the grey picture (torchvision's ColorJitter).
void jitter(Image& image, const AugmentOptions& options, Random& random);

}  // namespace troupe::learners::data
