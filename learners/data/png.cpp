// PNG through libpng's simplified interface, which does palettes, interlacing, gamma and depths.
#include <png.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "learners/data/codecs.hpp"

namespace troupe::learners::data {
namespace {

// Frees what libpng holds on every way out.
struct Reader {
  png_image image{};
  Reader() { image.version = PNG_IMAGE_VERSION; }
  ~Reader() { png_image_free(&image); }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;
};

// Grey or RGB to grey or RGB. Alpha, after them, is dropped, not blended: what lies under
// transparent pixels comes out.
Image converted(Image image, bool alpha, int channels) {
  const int colours = image.channels - (alpha ? 1 : 0);
  if (!alpha && colours == channels) return image;
  Image out(image.width, image.height, channels);
  std::uint8_t* to = out.pixels.data();
  for (std::size_t i = 0; i < image.pixels.size(); i += image.channels) {
    const std::uint8_t* from = &image.pixels[i];
    if (colours == channels || colours == 1)
      for (int c = 0; c < channels; ++c) *to++ = from[colours == 1 ? 0 : c];
    else
      *to++ = luma(from[0], from[1], from[2]);
  }
  return out;
}

// libpng stops at the last row; the chunk that ends every PNG shows that the file is whole.
bool has_end(std::span<const std::uint8_t> bytes) {
  constexpr std::string_view kEnd = "IEND";
  const auto found = std::search(bytes.rbegin(), bytes.rend(), kEnd.rbegin(), kEnd.rend());
  return found != bytes.rend() && found - bytes.rbegin() >= 4;  // its checksum follows
}

}  // namespace

bool is_png(std::span<const std::uint8_t> bytes) {
  return bytes.size() >= 8 && png_sig_cmp(bytes.data(), 0, 8) == 0;
}

Result<StoredPart> decode_png(std::span<const std::uint8_t> bytes, int channels,
                              const ChooseStored& choose) {
  if (!has_end(bytes)) return fail(ErrorCode::kCorrupt, "PNG: it is truncated (no end chunk)");
  Reader reader;
  if (png_image_begin_read_from_memory(&reader.image, bytes.data(), bytes.size()) == 0)
    return fail(ErrorCode::kCorrupt, std::string("PNG: ") + reader.image.message);
  if (reader.image.width > INT32_MAX || reader.image.height > INT32_MAX)
    return fail(ErrorCode::kCorrupt, "PNG: it says more than 2^31 pixels a side");
  const Extent size{static_cast<int>(reader.image.width), static_cast<int>(reader.image.height)};
  auto region = choose(size);
  if (!region) return tl::unexpected(region.error());

  const bool alpha = (reader.image.format & PNG_FORMAT_FLAG_ALPHA) != 0;
  const bool colour = (reader.image.format & PNG_FORMAT_FLAG_COLOR) != 0;
  reader.image.format =
      (colour ? PNG_FORMAT_RGB : PNG_FORMAT_GRAY) | (alpha ? PNG_FORMAT_FLAG_ALPHA : 0U);
  reader.image.flags |= PNG_IMAGE_FLAG_16BIT_sRGB;  // else deep files count as linear light
  Image image(size.width, size.height, (colour ? 3 : 1) + (alpha ? 1 : 0));
  if (png_image_finish_read(&reader.image, nullptr, image.pixels.data(), 0, nullptr) == 0 ||
      PNG_IMAGE_FAILED(reader.image))
    return fail(ErrorCode::kCorrupt, std::string("PNG: ") + reader.image.message);
  return StoredPart{converted(std::move(image), alpha, channels), *region};
}

}  // namespace troupe::learners::data
