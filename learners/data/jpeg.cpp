// JPEG through libjpeg-turbo's own interface, which can decode part of a picture.
#include <csetjmp>
#include <cstddef>
#include <cstdio>
// jpeglib.h needs the two above.
#include <jpeglib.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "learners/data/codecs.hpp"

namespace troupe::learners::data {
namespace {

// libjpeg reports errors by a jump out of its C frames: functions that call it hold nothing that a
// destructor would have to free.
struct ErrorManager {
  jpeg_error_mgr base{};
  std::jmp_buf out{};
  char message[JMSG_LENGTH_MAX] = {};
};

[[noreturn]] void fail_out(j_common_ptr info) {
  auto* errors = reinterpret_cast<ErrorManager*>(info->err);
  errors->base.format_message(info, errors->message);
  std::longjmp(errors->out, 1);
}

// Warnings are what a truncated or damaged file gives: they count as errors.
void note(j_common_ptr info, int level) {
  if (level < 0) fail_out(info);
}

struct Decoder {
  jpeg_decompress_struct info{};
  ErrorManager errors;

  Decoder() {
    info.err = jpeg_std_error(&errors.base);
    errors.base.error_exit = fail_out;
    errors.base.emit_message = note;
    jpeg_create_decompress(&info);
  }
  ~Decoder() { jpeg_destroy_decompress(&info); }
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;
};

// False: errors.message says why. All of it is C below setjmp.
bool read_header(Decoder& decoder, std::span<const std::uint8_t> bytes) {
  if (setjmp(decoder.errors.out) != 0) return false;
  jpeg_mem_src(&decoder.info, bytes.data(), bytes.size());
  jpeg_read_header(&decoder.info, TRUE);
  return true;
}

bool start(Decoder& decoder, J_COLOR_SPACE colours, unsigned eighths) {
  if (setjmp(decoder.errors.out) != 0) return false;
  decoder.info.out_color_space = colours;
  decoder.info.scale_num = eighths;
  decoder.info.scale_denom = 8;
  jpeg_start_decompress(&decoder.info);
  return true;
}

bool crop(Decoder& decoder, JDIMENSION& left, JDIMENSION& width, JDIMENSION top) {
  if (setjmp(decoder.errors.out) != 0) return false;
  jpeg_crop_scanline(&decoder.info, &left, &width);
  if (top > 0) jpeg_skip_scanlines(&decoder.info, top);
  return true;
}

bool read_rows(Decoder& decoder, std::uint8_t* pixels, std::size_t stride, JDIMENSION rows,
               bool to_the_end) {
  if (setjmp(decoder.errors.out) != 0) return false;
  for (JDIMENSION y = 0; y < rows;) {
    JSAMPROW row = pixels + y * stride;
    y += jpeg_read_scanlines(&decoder.info, &row, 1);
  }
  if (to_the_end) jpeg_finish_decompress(&decoder.info);
  return true;
}

tl::unexpected<Error> corrupt(const Decoder& decoder) {
  return fail(ErrorCode::kCorrupt, std::string("JPEG: ") + decoder.errors.message);
}

// Largest reduction that leaves the region at least as large as what it will be reduced to.
unsigned scale_in_eighths(const Region& region, int reduce_to) {
  if (reduce_to < 1) return 8;
  const double spare = std::min(region.width, region.height) / reduce_to;
  return spare >= 8 ? 1 : spare >= 4 ? 2 : spare >= 2 ? 4 : 8;
}

// CMYK as Pillow converts it, which takes all of them for Adobe's, whose inks are inverted.
Image from_cmyk(const Image& image, int channels) {
  Image out(image.width, image.height, channels);
  std::uint8_t* to = out.pixels.data();
  for (std::size_t i = 0; i < image.pixels.size(); i += 4) {
    const int light = image.pixels[i + 3];  // 255 - black
    int rgb[3];
    for (int c = 0; c < 3; ++c) {
      const int product = (255 - image.pixels[i + c]) * light + 128;
      rgb[c] = light - (((product >> 8) + product) >> 8);
    }
    if (channels == 1)
      *to++ = luma(rgb[0], rgb[1], rgb[2]);
    else
      for (const int value : rgb) *to++ = static_cast<std::uint8_t>(value);
  }
  return out;
}

// The marker that ends every JPEG cannot be part of its data. Looking for it finds a truncated file
// also where only a part of it is decoded.
bool has_end(std::span<const std::uint8_t> data) {
  for (std::size_t i = data.size(); i >= 2; --i)
    if (data[i - 1] == 0xd9 && data[i - 2] == 0xff) return true;
  return false;
}

}  // namespace

bool is_jpeg(std::span<const std::uint8_t> bytes) {
  return bytes.size() >= 3 && bytes[0] == 0xff && bytes[1] == 0xd8 && bytes[2] == 0xff;
}

Result<StoredPart> decode_jpeg(std::span<const std::uint8_t> bytes, int channels, int reduce_to,
                               const ChooseStored& choose) {
  Decoder decoder;
  if (!read_header(decoder, bytes)) return corrupt(decoder);
  const auto chosen = choose(
      {static_cast<int>(decoder.info.image_width), static_cast<int>(decoder.info.image_height)});
  if (!chosen) return tl::unexpected(chosen.error());
  Region region = *chosen;

  if (!has_end(bytes.last(decoder.info.src->bytes_in_buffer)))
    return fail(ErrorCode::kCorrupt, "JPEG: it is truncated (no end marker)");
  const bool inks =
      decoder.info.jpeg_color_space == JCS_CMYK || decoder.info.jpeg_color_space == JCS_YCCK;
  const unsigned eighths = scale_in_eighths(region, reduce_to);
  const J_COLOR_SPACE colours = inks ? JCS_CMYK : channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  if (!start(decoder, colours, eighths)) return corrupt(decoder);
  const double across = static_cast<double>(decoder.info.output_width) / decoder.info.image_width;
  const double down = static_cast<double>(decoder.info.output_height) / decoder.info.image_height;
  region = {region.x * across, region.y * down, region.width * across, region.height * down};

  // Some pixels more on each side: chroma is interpolated from neighbours, which a cut takes away.
  constexpr double kMargin = 16;
  auto left = static_cast<JDIMENSION>(std::max(0.0, std::floor(region.x - kMargin)));
  const auto top = static_cast<JDIMENSION>(std::max(0.0, std::floor(region.y - kMargin)));
  const auto right =
      std::min<JDIMENSION>(decoder.info.output_width,
                           static_cast<JDIMENSION>(std::ceil(region.x + region.width + kMargin)));
  const auto bottom =
      std::min<JDIMENSION>(decoder.info.output_height,
                           static_cast<JDIMENSION>(std::ceil(region.y + region.height + kMargin)));
  JDIMENSION width = right - left;
  if (!crop(decoder, left, width, top)) return corrupt(decoder);

  const int stored = inks ? 4 : channels;
  Image image(static_cast<int>(width), static_cast<int>(bottom - top), stored);
  if (!read_rows(decoder, image.pixels.data(), image.stride(), bottom - top,
                 bottom == decoder.info.output_height))
    return corrupt(decoder);
  region.x -= left;
  region.y -= top;
  // A reduced picture's last pixel may stand for less than a whole one.
  region.width = std::min(region.width, image.width - region.x);
  region.height = std::min(region.height, image.height - region.y);
  return StoredPart{inks ? from_cmyk(image, channels) : std::move(image), region};
}

}  // namespace troupe::learners::data
