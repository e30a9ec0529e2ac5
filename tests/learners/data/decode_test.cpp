// Every kind of picture, every way in which one can be broken.
#include "learners/data/decode.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "envs/spec/random.hpp"
#include "learners/data/codecs.hpp"
#include "learners/data/grid.hpp"
#include "tests/learners/data/pictures.hpp"

namespace troupe::learners::data {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

int largest_difference(const Image& a, const Image& b) {
  int largest = 0;
  for (std::size_t i = 0; i < a.pixels.size(); ++i)
    largest = std::max(largest, std::abs(int{a.pixels[i]} - int{b.pixels[i]}));
  return largest;
}

TEST(Decode, PngGivesBackEveryPixel) {
  const Image colour = test_picture(19, 13, 3), grey = test_picture(19, 13, 1);
  EXPECT_EQ(decode(png_of(colour), "p")->image, colour);
  EXPECT_EQ(decode(png_of(grey), "p", {.channels = 1})->image, grey);
  const Image widened = decode(png_of(grey), "p")->image;
  ASSERT_EQ(widened.channels, 3);
  for (std::size_t i = 0; i < grey.pixels.size(); ++i)
    for (std::size_t c = 0; c < 3; ++c) ASSERT_EQ(widened.pixels[3 * i + c], grey.pixels[i]);
  const Image narrowed = decode(png_of(colour), "p", {.channels = 1})->image;
  for (std::size_t i = 0; i < narrowed.pixels.size(); ++i)
    ASSERT_EQ(narrowed.pixels[i],
              luma(colour.pixels[3 * i], colour.pixels[3 * i + 1], colour.pixels[3 * i + 2]));
}

TEST(Decode, AlphaIsDropped) {
  Image image = test_picture(9, 5, 4);
  for (std::size_t i = 3; i < image.pixels.size(); i += 4)
    image.pixels[i] = static_cast<std::uint8_t>(i * 37 + 1);  // never opaque throughout
  const Image out = decode(png_of(image), "p")->image;
  ASSERT_EQ(out.channels, 3);
  for (std::size_t i = 0; i < 45; ++i)
    for (std::size_t c = 0; c < 3; ++c)
      ASSERT_EQ(out.pixels[3 * i + c], image.pixels[4 * i + c]) << i;
  Image grey(4, 1, 2);
  grey.pixels = {10, 255, 20, 128, 30, 7, 40, 1};
  EXPECT_EQ(decode(png_of(grey), "p", {.channels = 1})->image.pixels,
            (std::vector<std::uint8_t>{10, 20, 30, 40}));
}

TEST(Decode, JpegIsCloseInEveryFlavour) {
  for (const bool progressive : {false, true})
    for (const int channels : {1, 3}) {
      const Image image = smooth_picture(70, 45, channels);
      const auto out =
          decode(jpeg_of(image, {.progressive = progressive}), "j", {.channels = channels});
      ASSERT_TRUE(out) << out.error().message;
      ASSERT_EQ(out->image.width, 70);
      ASSERT_EQ(out->image.height, 45);
      EXPECT_LE(largest_difference(out->image, image), 12);
    }
  const Image grey = smooth_picture(32, 32, 1);
  const Image widened = decode(jpeg_of(grey), "j")->image;
  ASSERT_EQ(widened.channels, 3);
  for (std::size_t i = 0; i < widened.pixels.size(); i += 3)
    ASSERT_EQ(widened.pixels[i], widened.pixels[i + 2]);
}

TEST(Decode, CmykJpegIsTakenForAdobes) {
  // Inverted inks: what is stored is 255 - ink.
  Image inks(16, 16, 4);
  for (std::size_t i = 0; i < inks.pixels.size(); i += 4) {
    inks.pixels[i] = 255;      // no cyan
    inks.pixels[i + 1] = 128;  // half magenta
    inks.pixels[i + 2] = 255;
    inks.pixels[i + 3] = 200;  // some black
  }
  const auto out = decode(jpeg_of(inks, {.quality = 100, .cmyk = true}), "c");
  ASSERT_TRUE(out) << out.error().message;
  EXPECT_NEAR(out->image.pixels[0], 200, 2);
  EXPECT_NEAR(out->image.pixels[1], 100, 2);
  EXPECT_NEAR(out->image.pixels[2], 200, 2);
  const auto grey = decode(jpeg_of(inks, {.quality = 100, .cmyk = true}), "c", {.channels = 1});
  EXPECT_NEAR(grey->image.pixels[0], luma(200, 100, 200), 3);
}

TEST(Decode, TheCamerasOrientationIsUndone) {
  const Image stored = smooth_picture(48, 32, 3);
  const Image plain = decode(jpeg_of(stored), "j")->image;
  for (int orientation = 1; orientation <= 8; ++orientation) {
    const auto out = decode(jpeg_of(stored, {.orientation = orientation}), "j");
    ASSERT_TRUE(out) << out.error().message;
    EXPECT_EQ(out->width, orientation >= 5 ? 32 : 48);
    EXPECT_EQ(out->image, turn(plain, orientation)) << orientation;
  }
  // The first row and column of the stored picture, by TIFF 6.0's words.
  const auto pixel = [](const Image& image, int x, int y) { return image.row(y)[3 * x]; };
  EXPECT_EQ(pixel(turn(plain, 2), 47, 0), pixel(plain, 0, 0));   // row at the top, column right
  EXPECT_EQ(pixel(turn(plain, 3), 47, 31), pixel(plain, 0, 0));  // bottom, right
  EXPECT_EQ(pixel(turn(plain, 4), 0, 31), pixel(plain, 0, 0));   // bottom, left
  EXPECT_EQ(pixel(turn(plain, 5), 5, 9), pixel(plain, 9, 5));    // left, top
  EXPECT_EQ(pixel(turn(plain, 6), 31, 0), pixel(plain, 0, 0));   // right, top
  EXPECT_EQ(pixel(turn(plain, 6), 31, 47), pixel(plain, 47, 0));
  EXPECT_EQ(pixel(turn(plain, 7), 31, 47), pixel(plain, 0, 0));  // right, bottom
  EXPECT_EQ(pixel(turn(plain, 8), 0, 47), pixel(plain, 0, 0));   // left, bottom
}

// What a part looks like does not depend on how much around it was decoded.
TEST(Decode, APartOfAJpegIsThatPartOfTheWhole) {
  Random random(3);
  for (const int orientation : {1, 3, 6, 8})
    for (const bool progressive : {false, true}) {
      const Encoded bytes =
          jpeg_of(smooth_picture(200, 131, 3),
                  {.quality = 60, .progressive = progressive, .orientation = orientation});
      const Image whole = decode(bytes, "j")->image;
      for (int i = 0; i < 30; ++i) {
        const int w = 1 + static_cast<int>(random.below(90)),
                  h = 1 + static_cast<int>(random.below(90));
        const auto x =
            static_cast<int>(random.below(static_cast<std::uint64_t>(whole.width - w + 1)));
        const auto y =
            static_cast<int>(random.below(static_cast<std::uint64_t>(whole.height - h + 1)));
        const Region wanted{double(x), double(y), double(w), double(h)};
        const auto part = decode(bytes, "j", {.choose = [&](int, int) { return wanted; }});
        ASSERT_TRUE(part) << part.error().message;
        ASSERT_LE(part->image.pixels.size(), whole.pixels.size());
        const int left = static_cast<int>(part->region.x), top = static_cast<int>(part->region.y);
        ASSERT_EQ(part->region.width, w);
        for (int row = 0; row < h; ++row)
          ASSERT_EQ(std::memcmp(part->image.row(top + row) + 3 * left, whole.row(y + row) + 3 * x,
                                static_cast<std::size_t>(3 * w)),
                    0)
              << orientation << " " << x << " " << y << " " << w << " " << h << " row " << row;
      }
    }
}

TEST(Decode, AReducedJpegShowsTheSamePart) {
  const Encoded bytes = jpeg_of(smooth_picture(640, 480, 3));
  const Region wanted{100, 80, 320, 300};
  const auto small =
      decode(bytes, "j", {.choose = [&](int, int) { return wanted; }, .reduce_to = 70});
  ASSERT_TRUE(small) << small.error().message;
  EXPECT_NEAR(small->region.width, 80, 1);  // a quarter
  const Image whole = decode(bytes, "j")->image;
  const auto middle = [](const Image& image, const Region& part) {
    return image.row(
        static_cast<int>(part.y + part.height / 2))[3 * static_cast<int>(part.x + part.width / 2)];
  };
  EXPECT_NEAR(middle(small->image, small->region), middle(whole, wanted), 8);
}

TEST(Decode, DeepPngKeepsItsBrightness) {
  // Linear light in 16 bits, as png16_of writes it: half of the light is 188 in sRGB.
  const auto out = decode(png16_of(2, 1, {32768, 32768, 32768, 65535, 0, 0}), "p");
  ASSERT_TRUE(out) << out.error().message;
  EXPECT_NEAR(out->image.pixels[0], 188, 3);  // libpng works with tables
  EXPECT_EQ(out->image.pixels[3], 255);
  EXPECT_EQ(out->image.pixels[4], 0);
}

TEST(Grid, ASheetIsWrittenAsItIs) {
  std::vector<Image> pictures;
  for (int i = 0; i < 5; ++i) {
    pictures.push_back(test_picture(4, 3, 3));
    pictures.back().pixels[0] = static_cast<std::uint8_t>(100 + i);
  }
  const auto sheet = grid(pictures, 3, 1);
  ASSERT_TRUE(sheet) << sheet.error().message;
  EXPECT_EQ(sheet->width, 14);
  EXPECT_EQ(sheet->height, 7);
  EXPECT_EQ(sheet->row(4)[3 * 5], 104);  // the second of the second row
  EXPECT_EQ(sheet->row(3)[3 * 2], 0);    // between the rows
  EXPECT_EQ(sheet->row(5)[3 * 12], 0);   // the missing one
  const auto png = encode_png(*sheet);
  ASSERT_TRUE(png);
  EXPECT_EQ(decode(*png, "sheet")->image, *sheet);
  EXPECT_FALSE(grid({}, 3));
  pictures.push_back(test_picture(5, 3, 3));
  EXPECT_FALSE(grid(pictures, 3));
  EXPECT_FALSE(encode_png(Image(2, 2, 2)));
}

TEST(Decode, ErrorsNameThePicture) {
  const Encoded junk{1, 2, 3};
  for (const Encoded& bytes : {junk, Encoded{}}) {
    const auto out = decode(bytes, "cats/7.jpg");
    ASSERT_FALSE(out);
    EXPECT_EQ(out.error().code, ErrorCode::kCorrupt);
    EXPECT_THAT(out.error().message, StartsWith("cats/7.jpg: "));
  }
  EXPECT_EQ(decode(junk, "x", {.channels = 2}).error().code, ErrorCode::kInvalidArgument);
  const Encoded good = png_of(test_picture(8, 8, 3));
  const auto outside = decode(good, "x", {.choose = [](int, int) { return Region{0, 0, 9, 9}; }});
  ASSERT_FALSE(outside);
  EXPECT_EQ(outside.error().code, ErrorCode::kInvalidArgument);
}

TEST(Decode, ABombIsRefusedBeforeItsPixelsAreTaken) {
  const auto out = decode(png_of(test_picture(200, 200, 1)), "bomb.png", {.max_pixels = 39999});
  ASSERT_FALSE(out);
  EXPECT_THAT(out.error().message, HasSubstr("200 x 200"));
}

TEST(Decode, EveryTruncationIsAnError) {
  const Image image = smooth_picture(40, 30, 3);
  for (const Encoded& whole :
       {png_of(image), jpeg_of(image), jpeg_of(image, {.progressive = true})})
    for (std::size_t size = 0; size < whole.size(); ++size) {
      const Encoded part(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
      ASSERT_FALSE(decode(part, "cut")) << size << " of " << whole.size();
    }
}

// A truncated file is found also where the wanted part came before the cut.
TEST(Decode, ATruncationBelowThePartIsAnErrorToo) {
  const Encoded whole = jpeg_of(smooth_picture(200, 200, 3));
  const Encoded part(whole.begin(), whole.end() - 100);
  EXPECT_FALSE(decode(part, "cut", {.choose = [](int, int) { return Region{0, 0, 20, 20}; }}));
}

TEST(Decode, DamagedBytesNeverDoMoreThanFail) {
  const Image image = smooth_picture(40, 30, 3);
  Random random(11);
  for (const Encoded& whole :
       {png_of(image), jpeg_of(image, {.orientation = 6}), jpeg_of(image, {.progressive = true})})
    for (int i = 0; i < 3000; ++i) {
      Encoded bytes = whole;
      for (int flips = 1 + static_cast<int>(random.below(3)); flips > 0; --flips)
        bytes[random.below(bytes.size())] ^= static_cast<std::uint8_t>(1U << random.below(8));
      const auto out = decode(bytes, "damaged", {.max_pixels = 1 << 22});
      if (!out) {
        ASSERT_THAT(out.error().message, StartsWith("damaged: "));
      }
    }
}

}  // namespace
}  // namespace troupe::learners::data
