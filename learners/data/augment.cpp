// Implements the transforms.
#include "learners/data/augment.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "learners/data/codecs.hpp"
#include "learners/data/resize.hpp"

namespace troupe::learners::data {
namespace {

int side(const AugmentOptions& options) { return static_cast<int>(options.size); }

int evaluation_side(const AugmentOptions& options) {
  return options.evaluation_resize == 0 ? side(options)
                                        : static_cast<int>(options.evaluation_resize);
}

// The square of `size` pixels whose corner is (left, top) in the picture with `padding` around.
Image padded_square(const Image& image, int left, int top, int padding, int size) {
  Image out(size, size, image.channels);
  for (int y = 0; y < size; ++y) {
    const int from_y = top + y - padding;
    if (from_y < 0 || from_y >= image.height) continue;
    const int begin = std::clamp(padding - left, 0, size);
    const int end = std::clamp(image.width + padding - left, begin, size);
    std::copy_n(
        image.row(from_y) + static_cast<std::ptrdiff_t>(left + begin - padding) * image.channels,
        static_cast<std::ptrdiff_t>(end - begin) * image.channels,
        out.row(y) + static_cast<std::ptrdiff_t>(begin) * image.channels);
  }
  return out;
}

std::uint8_t blend(double other, double value, double factor) {
  return static_cast<std::uint8_t>(std::clamp(other + factor * (value - other), 0.0, 255.0));
}

std::uint8_t grey_of(const Image& image, const std::uint8_t* pixel) {
  return image.channels == 1 ? pixel[0] : luma(pixel[0], pixel[1], pixel[2]);
}

void brighten(Image& image, double factor) {
  std::array<std::uint8_t, 256> table{};
  for (int v = 0; v < 256; ++v) table[v] = blend(0, v, factor);
  for (std::uint8_t& value : image.pixels) value = table[value];
}

void change_contrast(Image& image, double factor) {
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < image.pixels.size(); i += image.channels)
    total += grey_of(image, &image.pixels[i]);
  const std::size_t count = image.pixels.size() / image.channels;
  const auto pixels = static_cast<double>(count);
  const double mean = std::floor(static_cast<double>(total) / pixels + 0.5);
  std::array<std::uint8_t, 256> table{};
  for (int v = 0; v < 256; ++v) table[v] = blend(mean, v, factor);
  for (std::uint8_t& value : image.pixels) value = table[value];
}

void saturate(Image& image, double factor) {
  if (image.channels != 3) return;
  for (std::size_t i = 0; i < image.pixels.size(); i += 3) {
    const double grey = grey_of(image, &image.pixels[i]);
    for (int c = 0; c < 3; ++c) image.pixels[i + c] = blend(grey, image.pixels[i + c], factor);
  }
}

void finish_training(Image& image, const AugmentOptions& options, Random& random) {
  if (random.uniform() < options.flip) mirror(image);
  jitter(image, options, random);
}

Result<Image> pad_crop(const Image& image, const AugmentOptions& options, Random& random) {
  const auto padding = static_cast<int>(options.padding);
  const int spare_x = image.width + 2 * padding - side(options);
  const int spare_y = image.height + 2 * padding - side(options);
  if (spare_x < 0 || spare_y < 0)
    return fail(ErrorCode::kInvalidArgument,
                "pad_crop: a picture of " + std::to_string(image.width) + " x " +
                    std::to_string(image.height) + " pixels with padding " +
                    std::to_string(padding) + " is smaller than size " +
                    std::to_string(options.size));
  const auto left = static_cast<int>(random.below(static_cast<std::uint64_t>(spare_x) + 1));
  const auto top = static_cast<int>(random.below(static_cast<std::uint64_t>(spare_y) + 1));
  return padded_square(image, left, top, padding, side(options));
}

Result<Image> pixels_of(std::span<const std::uint8_t> encoded, std::string_view name, int channels,
                        const AugmentOptions& options,
                        const std::function<Region(int, int)>& choose, int reduce_to) {
  auto decoded = decode(
      encoded, name,
      {.channels = channels, .choose = choose, .reduce_to = options.fast_decode ? reduce_to : 0});
  if (!decoded) return tl::unexpected(decoded.error());
  return resize(decoded->image, decoded->region, side(options), side(options));
}

}  // namespace

Result<void> check(const AugmentOptions& options) {
  const auto refuse = [](const char* what) { return fail(ErrorCode::kInvalidArgument, what); };
  if (options.scale_min > options.scale_max) return refuse("scale_min is above scale_max");
  if (options.ratio_min > options.ratio_max) return refuse("ratio_min is above ratio_max");
  if (options.evaluation_resize != 0 && options.evaluation_resize < options.size)
    return refuse("evaluation_resize is below size: the centre cut would not fit");
  return {};
}

Region random_resized_region(int width, int height, const AugmentOptions& options, Random& random) {
  const double area = static_cast<double>(width) * height;
  for (int attempt = 0; attempt < 10; ++attempt) {
    const double target = area * random.uniform(options.scale_min, options.scale_max);
    const double ratio =
        std::exp(random.uniform(std::log(options.ratio_min), std::log(options.ratio_max)));
    const auto w = static_cast<int>(std::lround(std::sqrt(target * ratio)));
    const auto h = static_cast<int>(std::lround(std::sqrt(target / ratio)));
    if (w < 1 || h < 1 || w > width || h > height) continue;
    const std::uint64_t top = random.below(static_cast<std::uint64_t>(height - h) + 1);
    const std::uint64_t left = random.below(static_cast<std::uint64_t>(width - w) + 1);
    return {static_cast<double>(left), static_cast<double>(top), static_cast<double>(w),
            static_cast<double>(h)};
  }
  // The largest centre part of an allowed shape.
  const double ratio =
      std::clamp(static_cast<double>(width) / height, options.ratio_min, options.ratio_max);
  const double w = std::min<double>(width, std::round(height * ratio));
  const double h = std::min<double>(height, std::round(width / ratio));
  return {std::floor((width - w) / 2), std::floor((height - h) / 2), w, h};
}

Region centre_region(int width, int height, const AugmentOptions& options) {
  const double part =
      std::min(width, height) * static_cast<double>(options.size) / evaluation_side(options);
  return {(width - part) / 2, (height - part) / 2, part, part};
}

void mirror(Image& image) {
  for (int y = 0; y < image.height; ++y)
    for (int left = 0, right = image.width - 1; left < right; ++left, --right)
      std::swap_ranges(image.row(y) + static_cast<std::ptrdiff_t>(left) * image.channels,
                       image.row(y) + static_cast<std::ptrdiff_t>(left + 1) * image.channels,
                       image.row(y) + static_cast<std::ptrdiff_t>(right) * image.channels);
}

void jitter(Image& image, const AugmentOptions& options, Random& random) {
  if (options.brightness == 0 && options.contrast == 0 && options.saturation == 0) return;
  std::array<int, 3> order{0, 1, 2};
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  const std::array<double, 3> spread{options.brightness, options.contrast, options.saturation};
  std::array<double, 3> factor{};
  for (std::size_t i = 0; i < spread.size(); ++i)
    factor[i] = random.uniform(1 - spread[i], 1 + spread[i]);
  for (const int what : order) {
    if (spread[what] == 0) continue;
    if (what == 0) brighten(image, factor[0]);
    if (what == 1) change_contrast(image, factor[1]);
    if (what == 2) saturate(image, factor[2]);
  }
}

Result<Image> training_picture(std::span<const std::uint8_t> encoded, std::string_view name,
                               int channels, const AugmentOptions& options, Random& random) {
  if (options.cut == "pad_crop") {
    auto decoded = decode(encoded, name, {.channels = channels});
    if (!decoded) return tl::unexpected(decoded.error());
    return training_picture(decoded->image, options, random);
  }
  const auto choose = [&](int width, int height) {
    return options.cut == "none" ? centre_region(width, height, options)
                                 : random_resized_region(width, height, options, random);
  };
  auto image = pixels_of(encoded, name, channels, options, choose, side(options));
  if (image) finish_training(*image, options, random);
  return image;
}

Result<Image> training_picture(const Image& image, const AugmentOptions& options, Random& random) {
  auto out = options.cut == "pad_crop" ? pad_crop(image, options, random)
             : options.cut == "none"
                 ? evaluation_picture(image, options)
                 : resize(image, random_resized_region(image.width, image.height, options, random),
                          side(options), side(options));
  if (out) finish_training(*out, options, random);
  return out;
}

Result<Image> evaluation_picture(std::span<const std::uint8_t> encoded, std::string_view name,
                                 int channels, const AugmentOptions& options) {
  const auto choose = [&](int width, int height) { return centre_region(width, height, options); };
  return pixels_of(encoded, name, channels, options, choose, side(options));
}

Result<Image> evaluation_picture(const Image& image, const AugmentOptions& options) {
  return resize(image, centre_region(image.width, image.height, options), side(options),
                side(options));
}

}  // namespace troupe::learners::data
