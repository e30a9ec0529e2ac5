// An 8-bit picture in memory. Plain values.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace troupe::learners::data {

// Rows of pixels, top first, the channels of a pixel side by side (HWC).
struct Image {
  int width = 0, height = 0, channels = 0;
  std::vector<std::uint8_t> pixels;  // [height][width][channels]

  Image() = default;
  Image(int w, int h, int c)
      : width(w),
        height(h),
        channels(c),
        pixels(static_cast<std::size_t>(w) * static_cast<std::size_t>(h) *
               static_cast<std::size_t>(c)) {}

  std::size_t stride() const { return static_cast<std::size_t>(width) * channels; }
  std::uint8_t* row(int y) { return pixels.data() + static_cast<std::size_t>(y) * stride(); }
  const std::uint8_t* row(int y) const {
    return pixels.data() + static_cast<std::size_t>(y) * stride();
  }
  bool operator==(const Image&) const = default;
};

// From now on malloc keeps the memory of pictures of up to 32 MB for the next one, where it would
// give it back to the kernel and ask for fresh pages every time. Of the whole process.
void keep_pixel_memory();

// Part of a picture in pixels; the edges may lie between them.
struct Region {
  double x = 0, y = 0, width = 0, height = 0;
  bool operator==(const Region&) const = default;
};

// The part of `region` that lies within the picture, if what sticks out is rounding error only.
inline std::optional<Region> within(const Region& region, int width, int height) {
  constexpr double kRounding = 1e-6;
  const double left = std::max(0.0, region.x), top = std::max(0.0, region.y);
  const double right = std::min<double>(width, region.x + region.width);
  const double bottom = std::min<double>(height, region.y + region.height);
  if (!(region.x >= -kRounding && region.y >= -kRounding && right > left && bottom > top &&
        region.x + region.width <= width + kRounding &&
        region.y + region.height <= height + kRounding))
    return std::nullopt;
  return Region{left, top, right - left, bottom - top};
}

}  // namespace troupe::learners::data
