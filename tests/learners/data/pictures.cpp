#include "tests/learners/data/pictures.hpp"

#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
// jpeglib.h needs the two above.
#include <jpeglib.h>
#include <png.h>

namespace troupe::learners::data {

Image test_picture(int width, int height, int channels) {
  Image image(width, height, channels);
  std::uint8_t* to = image.pixels.data();
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x)
      for (int c = 0; c < channels; ++c)
        *to++ = static_cast<std::uint8_t>(x * 7 + y * 13 + c * 31 + x * y % 11 * 5);
  return image;
}

Image smooth_picture(int width, int height, int channels) {
  Image image(width, height, channels);
  std::uint8_t* to = image.pixels.data();
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x)
      for (int c = 0; c < channels; ++c)
        *to++ = static_cast<std::uint8_t>(128 + 60 * std::sin(x * 0.05 + c) +
                                          50 * std::cos(y * 0.04 - c));
  return image;
}

namespace {

// The smallest EXIF block that holds an orientation, big-endian.
Encoded exif(int orientation) {
  return {
      'E', 'x', 'i', 'f',  0,    0, 'M', 'M', 0, 42, 0, 0, 0,
      8,   0,   1,   0x01, 0x12, 0, 3,   0,   0, 0,  1, 0, static_cast<std::uint8_t>(orientation),
      0,   0,   0,   0,    0,    0};
}

}  // namespace

Encoded jpeg_of(const Image& image, const JpegOptions& options) {
  jpeg_compress_struct info{};
  jpeg_error_mgr errors{};
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&info, &bytes, &size);
  info.image_width = static_cast<JDIMENSION>(image.width);
  info.image_height = static_cast<JDIMENSION>(image.height);
  info.input_components = image.channels;
  info.in_color_space = options.cmyk ? JCS_CMYK : image.channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, options.quality, TRUE);
  if (options.progressive) jpeg_simple_progression(&info);
  jpeg_start_compress(&info, TRUE);
  if (options.orientation > 0) {
    const Encoded block = exif(options.orientation);
    jpeg_write_marker(&info, JPEG_APP0 + 1, block.data(), static_cast<unsigned>(block.size()));
  }
  for (int y = 0; y < image.height; ++y) {
    auto* row = const_cast<JSAMPROW>(image.row(y));
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  Encoded out(bytes, bytes + size);
  jpeg_destroy_compress(&info);
  std::free(bytes);
  return out;
}

namespace {

Encoded write_png(png_image& header, const void* pixels) {
  header.version = PNG_IMAGE_VERSION;
  png_alloc_size_t size = 0;
  png_image_write_to_memory(&header, nullptr, &size, 0, pixels, 0, nullptr);
  Encoded out(size);
  if (png_image_write_to_memory(&header, out.data(), &size, 0, pixels, 0, nullptr) == 0)
    std::abort();
  out.resize(size);
  return out;
}

}  // namespace

Encoded png_of(const Image& image) {
  png_image header{};
  header.width = static_cast<png_uint_32>(image.width);
  header.height = static_cast<png_uint_32>(image.height);
  constexpr png_uint_32 kFormats[] = {PNG_FORMAT_GRAY, PNG_FORMAT_GA, PNG_FORMAT_RGB,
                                      PNG_FORMAT_RGBA};
  header.format = kFormats[image.channels - 1];
  return write_png(header, image.pixels.data());
}

Encoded png16_of(int width, int height, const std::vector<std::uint16_t>& rgb) {
  png_image header{};
  header.width = static_cast<png_uint_32>(width);
  header.height = static_cast<png_uint_32>(height);
  header.format = PNG_FORMAT_LINEAR_RGB;
  return write_png(header, rgb.data());
}

}  // namespace troupe::learners::data
