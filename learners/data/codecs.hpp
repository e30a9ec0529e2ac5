// What decode.cpp puts together: one function a format, in the picture's own orientation. Private
// to this folder. Errors are kCorrupt without the file's name.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "envs/spec/result.hpp"
#include "learners/data/image.hpp"

namespace troupe::learners::data {

// How a picture must be turned to stand upright: 1 to 8 as in TIFF's and EXIF's Orientation.
using Orientation = int;

struct Extent {
  int width = 0, height = 0;
};
// The region wanted of a stored picture of that size; kInvalidArgument or kCorrupt ends the decode.
using ChooseStored = std::function<Result<Region>(Extent stored)>;

struct StoredPart {
  Image image;
  Region region;  // as in Decoded
};

// ITU-R 601-2 luma with Pillow's rounding.
inline std::uint8_t luma(int red, int green, int blue) {
  return static_cast<std::uint8_t>((red * 19595 + green * 38470 + blue * 7471 + 0x8000) >> 16);
}

bool is_jpeg(std::span<const std::uint8_t> bytes);
bool is_png(std::span<const std::uint8_t> bytes);
Result<StoredPart> decode_jpeg(std::span<const std::uint8_t> bytes, int channels, int reduce_to,
                               const ChooseStored& choose);
Result<StoredPart> decode_png(std::span<const std::uint8_t> bytes, int channels,
                              const ChooseStored& choose);

// 1 where the bytes say nothing or nonsense.
Orientation orientation_of(std::span<const std::uint8_t> jpeg);
// Width and height after turning.
Extent upright(Extent stored, Orientation orientation);
// A region of the upright picture as one of the stored picture, and back.
Region to_stored(const Region& region, Extent stored, Orientation orientation);
Region to_upright(const Region& region, Extent stored, Orientation orientation);
Image turn(Image image, Orientation orientation);

}  // namespace troupe::learners::data
