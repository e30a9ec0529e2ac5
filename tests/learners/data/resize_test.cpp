// Against Pillow's own numbers, and what it must keep.
#include "learners/data/resize.hpp"

#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>

#include "tests/learners/data/pictures.hpp"

namespace troupe::learners::data {
namespace {

std::uint32_t checksum(const Image& image) {
  return static_cast<std::uint32_t>(
      crc32(0, image.pixels.data(), static_cast<unsigned>(image.pixels.size())));
}

struct Recorded {
  int width, height, channels;
  Region region;
  int new_width, new_height;
  std::uint32_t checksum;
};

TEST(Resize, GivesPillowsPixels) {
  // Pillow 13.0.0, by record_pillow.py.
  const Recorded recorded[] = {
      {41, 29, 3, {0, 0, 41, 29}, 16, 12, 0x237b9496U},
      {41, 29, 3, {3.25, 1.5, 27.5, 26.5}, 16, 16, 0xf072b616U},
      {41, 29, 3, {0, 0, 41, 29}, 60, 40, 0x59a354d2U},
      {41, 29, 3, {0, 0, 41, 29}, 16, 40, 0x2f333464U},
      {64, 64, 1, {0, 0, 64, 64}, 7, 9, 0xb5c56b2fU},
      {20, 10, 3, {0, 0, 20, 10}, 20, 10, 0xa1230491U},
  };
  for (const Recorded& one : recorded) {
    const Image image = test_picture(one.width, one.height, one.channels);
    const auto out = resize(image, one.region, one.new_width, one.new_height);
    ASSERT_TRUE(out) << out.error().message;
    EXPECT_EQ(out->width, one.new_width);
    EXPECT_EQ(out->height, one.new_height);
    EXPECT_EQ(checksum(*out), one.checksum) << one.width << "x" << one.height << "x" << one.channels
                                            << " to " << one.new_width << "x" << one.new_height;
  }
}

TEST(Resize, ARegionOutsideIsRefusedAndRoundingErrorIsNot) {
  const Image image = test_picture(10, 10, 3);
  for (const Region& region :
       {Region{-1, 0, 5, 5}, Region{0, 6, 5, 5}, Region{0, 0, 0, 5}, Region{0, 0, 11, 5}})
    EXPECT_FALSE(resize(image, region, 4, 4)) << region.x << " " << region.y;
  EXPECT_FALSE(resize(image, {0, 0, 10, 10}, 0, 4));
  EXPECT_FALSE(resize(test_picture(4, 4, 2), {0, 0, 4, 4}, 2, 2));
  EXPECT_TRUE(resize(image, {1e-13, -1e-13, 10, 10}, 4, 4));
}

TEST(Resize, AFlatPictureStaysFlat) {
  Image image(33, 17, 3);
  std::fill(image.pixels.begin(), image.pixels.end(), std::uint8_t{201});
  for (const int side : {1, 5, 40}) {
    const auto out = resize(image, {0.3, 0.4, 31, 15}, side, side);
    ASSERT_TRUE(out);
    for (const std::uint8_t value : out->pixels) ASSERT_EQ(value, 201);
  }
}

}  // namespace
}  // namespace troupe::learners::data
