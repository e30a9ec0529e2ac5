#include "learners/data/grid.hpp"

#include <png.h>

#include <algorithm>
#include <string>

namespace troupe::learners::data {

Result<Image> grid(std::span<const Image> pictures, int columns, int gap) {
  if (pictures.empty() || columns < 1 || gap < 0)
    return fail(ErrorCode::kInvalidArgument, "a sheet needs a picture and a column");
  const Image& first = pictures.front();
  for (const Image& picture : pictures)
    if (picture.width != first.width || picture.height != first.height ||
        picture.channels != first.channels)
      return fail(ErrorCode::kInvalidArgument, "the pictures of a sheet differ in size");
  const int rows = (static_cast<int>(pictures.size()) + columns - 1) / columns;
  Image out(columns * (first.width + gap) - gap, rows * (first.height + gap) - gap, first.channels);
  for (std::size_t i = 0; i < pictures.size(); ++i) {
    const int left = static_cast<int>(i) % columns * (first.width + gap);
    const int top = static_cast<int>(i) / columns * (first.height + gap);
    for (int y = 0; y < first.height; ++y)
      std::copy_n(pictures[i].row(y), first.stride(),
                  out.row(top + y) + static_cast<std::ptrdiff_t>(left) * first.channels);
  }
  return out;
}

Result<std::vector<std::uint8_t>> encode_png(const Image& image) {
  png_image header{};
  header.version = PNG_IMAGE_VERSION;
  header.width = static_cast<png_uint_32>(image.width);
  header.height = static_cast<png_uint_32>(image.height);
  if (image.channels == 1)
    header.format = PNG_FORMAT_GRAY;
  else if (image.channels == 3)
    header.format = PNG_FORMAT_RGB;
  else if (image.channels == 4)
    header.format = PNG_FORMAT_RGBA;
  else
    return fail(ErrorCode::kInvalidArgument,
                "a picture of " + std::to_string(image.channels) + " channels is no PNG");
  const auto failed = [&] {
    return fail(ErrorCode::kInternal, std::string("PNG: ") + header.message);
  };
  std::vector<std::uint8_t> bytes(PNG_IMAGE_PNG_SIZE_MAX(header));
  png_alloc_size_t size = bytes.size();
  if (png_image_write_to_memory(&header, bytes.data(), &size, 0, image.pixels.data(), 0, nullptr) ==
      0)
    return failed();
  bytes.resize(size);
  return bytes;
}

}  // namespace troupe::learners::data
