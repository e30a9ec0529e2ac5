// Encoded pictures to pixels: JPEG by libjpeg-turbo, PNG by libpng, the camera's orientation by
// libexif. Every input is untrusted: sizes are bounded before memory is taken. Thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

#include "envs/spec/result.hpp"
#include "learners/data/image.hpp"

namespace troupe::learners::data {

struct DecodeOptions {
  int channels = 3;  // 3: RGB, 1: grey
  // Which part is wanted of a picture of so many pixels, after its orientation; empty: all of it.
  // It may be any region within the picture.
  std::function<Region(int width, int height)> choose{};
  // Side in pixels to which the part will be reduced; 0: decode every pixel. A JPEG whose part is
  // at least twice that is decoded at 1/2, 1/4 or 1/8: faster, and not the same pixels.
  int reduce_to = 0;
  std::int64_t max_pixels = 178956970;  // Pillow's bound against decompression bombs
};

struct Decoded {
  Image image;                // holds the wanted part, with whatever else was decoded around it
  Region region;              // the wanted part, in pixels of `image`
  int width = 0, height = 0;  // of the whole picture
};

// A JPEG may be grey, RGB, YCbCr, CMYK or YCCK (Adobe's inverted one too), baseline or progressive;
// a PNG anything, its alpha dropped and 16 bits reduced to 8, both as Pillow's convert("RGB") does
// it. kCorrupt when the bytes are neither, are truncated or contradict themselves: the message
// begins with `name`. kInvalidArgument for other channels than 1 and 3, or a region outside.
Result<Decoded> decode(std::span<const std::uint8_t> bytes, std::string_view name,
                       const DecodeOptions& options = {});

}  // namespace troupe::learners::data
