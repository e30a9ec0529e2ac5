// Pictures for tests, and encoders for them.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "learners/data/image.hpp"

namespace troupe::learners::data {

using Encoded = std::vector<std::uint8_t>;

// Every pixel another value, as in record_pillow.py.
Image test_picture(int width, int height, int channels);
// Smooth, so that JPEG keeps it nearly.
Image smooth_picture(int width, int height, int channels);

struct JpegOptions {
  int quality = 95;
  bool progressive = false;
  bool cmyk = false;    // channels 4, written as Adobe's inverted inks
  int orientation = 0;  // 1 to 8: with an EXIF block that says so
};
Encoded jpeg_of(const Image& image, const JpegOptions& options = {});
// `channels` 1 to 4 as grey, grey and alpha, RGB, RGBA.
Encoded png_of(const Image& image);
Encoded png16_of(int width, int height, const std::vector<std::uint16_t>& rgb);

}  // namespace troupe::learners::data
