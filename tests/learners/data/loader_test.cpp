// What comes out depends on seed, epoch and position alone; broken pictures are named.
#include "learners/data/loader.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "tests/learners/data/pictures.hpp"
#include "tests/support/temporary_folder.hpp"

namespace troupe::learners::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

LoaderOptions options_of(std::int64_t threads) {
  LoaderOptions options;
  options.augment.size = 12;
  options.augment.evaluation_resize = 0;
  options.threads = threads;
  options.seed = 5;
  return options;
}

std::vector<std::uint8_t> all_pixels(Loader& loader, std::uint64_t epoch, std::int64_t size,
                                     std::int64_t step) {
  for (std::int64_t at = 0; at < size; at += step)
    loader.request(epoch, at, std::min(size, at + step));
  std::vector<std::uint8_t> pixels;
  while (loader.pending() > 0) {
    const auto pictures = loader.next();
    EXPECT_TRUE(pictures) << pictures.error().message;
    pixels.insert(pixels.end(), pictures->pixels.begin(), pictures->pixels.end());
  }
  return pixels;
}

TEST(Loader, ThreadsAndRequestSizesChangeNothing) {
  const std::shared_ptr<const DataSet> set = make_synthetic(53, 5, 16, 1);
  Loader one(set, options_of(1)), many(set, options_of(4));
  const auto expected = all_pixels(one, 3, 53, 53);
  EXPECT_EQ(all_pixels(many, 3, 53, 10), expected);
  EXPECT_EQ(all_pixels(many, 3, 53, 1), expected);
  EXPECT_NE(all_pixels(many, 4, 53, 10), expected);
}

TEST(Loader, AnEpochHoldsEveryPictureOnce) {
  const std::shared_ptr<const DataSet> set = make_synthetic(40, 40, 16, 1);  // label = index
  Loader loader(set, options_of(3));
  loader.request(0, 0, 40);
  const auto pictures = loader.next();
  ASSERT_TRUE(pictures);
  std::vector<std::int64_t> labels = pictures->labels;
  EXPECT_FALSE(std::is_sorted(labels.begin(), labels.end()));
  std::sort(labels.begin(), labels.end());
  for (std::int64_t i = 0; i < 40; ++i) EXPECT_EQ(labels[static_cast<std::size_t>(i)], i);
  EXPECT_EQ(pictures->positions.front(), 0);
  EXPECT_EQ(pictures->positions.back(), 39);
}

TEST(Loader, EvaluationGoesThroughTheSetInItsOrder) {
  const std::shared_ptr<const DataSet> set = make_synthetic(20, 20, 16, 1);
  auto options = options_of(2);
  options.training = false;
  options.augment.size = 16;
  Loader loader(set, options);
  loader.request(0, 5, 8);
  const auto pictures = loader.next();
  ASSERT_TRUE(pictures);
  EXPECT_THAT(pictures->labels, ElementsAre(5, 6, 7));
  const auto record = set->read(5);
  const Image& first = std::get<Image>(record->content);
  EXPECT_TRUE(std::equal(first.pixels.begin(), first.pixels.end(), pictures->pixels.begin()));
}

// One truncated picture among many: named, left out or an error, as the options say.
TEST(Loader, ACorruptPictureIsNamedAndCounted) {
  TemporaryFolder folder;
  std::filesystem::create_directory(folder / "a");
  const Encoded good = png_of(test_picture(20, 20, 3));
  for (int i = 0; i < 10; ++i) {
    const std::size_t size = i == 4 ? good.size() / 2 : good.size();
    write_content(folder / "a" / (std::to_string(i) + ".png"),
                  std::string(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size)));
  }
  const std::shared_ptr<const DataSet> set = *open_image_folder(folder.path());
  auto options = options_of(2);
  Loader strict(set, options);
  strict.request(0, 0, 10);
  const auto refused = strict.next();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kCorrupt);
  EXPECT_THAT(refused.error().message, HasSubstr("4.png"));
  options.skip_corrupt = true;
  Loader patient(set, options);
  patient.request(0, 0, 10);
  const auto rest = patient.next();
  ASSERT_TRUE(rest);
  EXPECT_EQ(rest->size(), 9);
  EXPECT_EQ(rest->pixels.size(), 9U * 12 * 12 * 3);
  ASSERT_EQ(rest->corrupt.size(), 1U);
  EXPECT_THAT(rest->corrupt[0], HasSubstr("4.png"));
}

TEST(Loader, AMissingFileIsAnErrorAlsoWhereCorruptOnesAreSkipped) {
  TemporaryFolder folder;
  std::filesystem::create_directory(folder / "a");
  const Encoded good = png_of(test_picture(20, 20, 3));
  write_content(folder / "a" / "1.png", std::string(good.begin(), good.end()));
  const std::shared_ptr<const DataSet> set = *open_image_folder(folder.path());
  std::filesystem::remove(folder / "a" / "1.png");
  auto options = options_of(1);
  options.skip_corrupt = true;
  Loader loader(set, options);
  EXPECT_EQ(loader.next().error().code, ErrorCode::kUnavailable);
  loader.request(0, 0, 1);
  EXPECT_EQ(loader.next().error().code, ErrorCode::kNotFound);
}

TEST(Loader, EndsWithWorkPending) {
  const std::shared_ptr<const DataSet> set = make_synthetic(5000, 5, 64, 1);
  Loader loader(set, options_of(2));
  for (std::uint64_t epoch = 0; epoch < 3; ++epoch) loader.request(epoch, 0, 5000);
}

}  // namespace
}  // namespace troupe::learners::data
