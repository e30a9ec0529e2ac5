// What comes out of the transforms, and how the cuts are distributed.
#include "learners/data/augment.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "tests/learners/data/pictures.hpp"

namespace troupe::learners::data {
namespace {

AugmentOptions plain(std::int64_t size, const std::string& cut) {
  AugmentOptions options;
  options.size = size;
  options.cut = cut;
  options.flip = 0;
  options.evaluation_resize = 0;
  return options;
}

TEST(RandomResizedRegion, AreasAndShapesAreThoseAsked) {
  AugmentOptions options;
  Random random(1);
  double least = 1, most = 0, lowest = 10, highest = 0;
  constexpr int kDraws = 20000;
  for (int i = 0; i < kDraws; ++i) {
    const Region region = random_resized_region(500, 375, options, random);
    ASSERT_TRUE(within(region, 500, 375));
    const double share = region.width * region.height / (500 * 375);
    least = std::min(least, share);
    most = std::max(most, share);
    lowest = std::min(lowest, region.width / region.height);
    highest = std::max(highest, region.width / region.height);
  }
  EXPECT_NEAR(least, 0.08, 0.005);
  EXPECT_GT(most, 0.95);
  EXPECT_NEAR(lowest, 3. / 4, 0.03);
  EXPECT_NEAR(highest, 4. / 3, 0.03);
}

TEST(RandomResizedRegion, AreaAndPlaceAreUniform) {
  AugmentOptions options;
  options.ratio_min = options.ratio_max = 1;  // every share fits
  Random random(2);
  double share = 0, place = 0;
  constexpr int kDraws = 20000;
  for (int i = 0; i < kDraws; ++i) {
    const Region region = random_resized_region(500, 500, options, random);
    share += region.width * region.height / (500 * 500) / kDraws;
    place += (region.x + region.width / 2) / 500 / kDraws;
  }
  EXPECT_NEAR(share, 0.54, 0.01);  // standard error 0.002
  EXPECT_NEAR(place, 0.5, 0.005);
}

TEST(RandomResizedRegion, AShapeThatCannotFitGivesTheCentre) {
  AugmentOptions options;
  options.scale_min = options.scale_max = 1;
  Random random(1);
  const Region region = random_resized_region(1000, 100, options, random);
  EXPECT_EQ(region, (Region{433, 0, 133, 100}));
}

TEST(PadCrop, EveryOffsetComesAndTheBorderIsBlack) {
  const Image image = test_picture(8, 8, 1);
  auto options = plain(8, "pad_crop");
  options.padding = 2;
  Random random(5);
  std::set<std::vector<std::uint8_t>> seen;
  for (int i = 0; i < 600; ++i) {
    const auto out = training_picture(image, options, random);
    ASSERT_TRUE(out) << out.error().message;
    seen.insert(out->pixels);
  }
  EXPECT_EQ(seen.size(), 25U);
  EXPECT_TRUE(seen.contains(image.pixels));
  Image shifted(8, 8, 1);  // by two down and right
  for (int y = 2; y < 8; ++y)
    for (int x = 2; x < 8; ++x) shifted.row(y)[x] = image.row(y - 2)[x - 2];
  EXPECT_TRUE(seen.contains(shifted.pixels));
  options.size = 13;
  EXPECT_FALSE(training_picture(image, options, random));
}

TEST(Training, HalfOfThePicturesAreMirrored) {
  const Image image = test_picture(6, 6, 3);
  Image other = image;
  mirror(other);
  EXPECT_EQ(other.row(2)[0], image.row(2)[15]);
  auto options = plain(6, "none");
  options.flip = 0.5;
  Random random(9);
  int mirrored = 0;
  for (int i = 0; i < 1000; ++i) {
    const Image out = *training_picture(image, options, random);
    ASSERT_TRUE(out == image || out == other);
    mirrored += out == other ? 1 : 0;
  }
  EXPECT_NEAR(mirrored, 500, 60);
}

TEST(Training, TheSameRandomGivesTheSamePictureEncodedOrNot) {
  const Image image = test_picture(60, 40, 3);
  const Encoded png = png_of(image);
  AugmentOptions options;
  options.size = 24;
  options.evaluation_resize = 0;
  options.brightness = options.contrast = options.saturation = 0.4;
  for (const char* cut : {"random_resized", "pad_crop", "none"}) {
    options.cut = cut;
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      Random a(seed), b(seed);
      const auto from_pixels = training_picture(image, options, a);
      const auto from_file = training_picture(png, "p", 3, options, b);
      ASSERT_TRUE(from_pixels && from_file);
      EXPECT_EQ(*from_pixels, *from_file) << cut << seed;
      EXPECT_EQ(from_file->width, 24);
    }
  }
}

TEST(Evaluation, TheCentreIsTaken) {
  Image image(64, 32, 1);  // white square in the middle
  for (int y = 8; y < 24; ++y)
    for (int x = 24; x < 40; ++x) image.row(y)[x] = 255;
  auto options = plain(16, "none");
  options.evaluation_resize = 32;  // the shorter side stays: the cut is the square
  const auto out = evaluation_picture(image, options);
  ASSERT_TRUE(out);
  for (const std::uint8_t value : out->pixels) ASSERT_EQ(value, 255);
  EXPECT_EQ(*evaluation_picture(png_of(image), "p", 1, options), *out);
}

TEST(Jitter, FactorsDoWhatTheirNamesSay) {
  Image image(2, 1, 3);
  image.pixels = {100, 50, 20, 200, 250, 10};
  AugmentOptions options;
  const auto range = [&](std::size_t at) {
    int low = 255, high = 0;
    for (std::uint64_t seed = 0; seed < 300; ++seed) {
      Random random(seed);
      Image out = image;
      jitter(out, options, random);
      low = std::min<int>(low, out.pixels[at]);
      high = std::max<int>(high, out.pixels[at]);
    }
    return std::pair{low, high};
  };
  EXPECT_EQ(range(0), (std::pair{100, 100}));
  options.brightness = 0.5;
  EXPECT_NEAR(range(0).first, 50, 2);
  EXPECT_NEAR(range(0).second, 150, 2);
  EXPECT_EQ(range(4).second, 255);  // clamped
  options.brightness = 0;
  options.saturation = 1;
  EXPECT_NEAR(range(1).first, 38, 1);   // twice as far from the grey of 62
  EXPECT_NEAR(range(1).second, 62, 1);  // grey
  options.saturation = 0;
  options.contrast = 1;
  EXPECT_LT(range(0).first, 80);          // away from the mean grey
  EXPECT_NEAR(range(0).second, 135, 14);  // to it
}

TEST(AugmentOptions, EmptyRangesAreRefused) {
  AugmentOptions options;
  EXPECT_TRUE(check(options));
  options.scale_min = 0.9, options.scale_max = 0.5;
  EXPECT_FALSE(check(options));
  options = {};
  options.ratio_min = 2;
  EXPECT_FALSE(check(options));
  options = {};
  options.evaluation_resize = 100;
  EXPECT_FALSE(check(options));
}

}  // namespace
}  // namespace troupe::learners::data
