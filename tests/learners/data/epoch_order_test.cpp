#include "learners/data/epoch_order.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

namespace troupe::learners::data {
namespace {

std::vector<std::int64_t> all_of(const EpochOrder& order) {
  std::vector<std::int64_t> indices;
  for (std::int64_t i = 0; i < order.size(); ++i) indices.push_back(order[i]);
  return indices;
}

bool is_permutation_of_all(std::vector<std::int64_t> indices) {
  std::sort(indices.begin(), indices.end());
  for (std::size_t i = 0; i < indices.size(); ++i)
    if (indices[i] != static_cast<std::int64_t>(i)) return false;
  return true;
}

TEST(EpochOrder, EveryEpochIsAnotherPermutationAndRepeatsWithTheSeed) {
  std::set<std::vector<std::int64_t>> seen;
  for (std::uint64_t epoch = 0; epoch < 5; ++epoch)
    for (const std::uint64_t seed : {0U, 1U}) {
      const OrderOptions options{.size = 100, .seed = seed};
      const auto order = all_of({options, epoch});
      EXPECT_TRUE(is_permutation_of_all(order));
      EXPECT_EQ(order, all_of({options, epoch}));
      EXPECT_TRUE(seen.insert(order).second) << epoch << " " << seed;
    }
}

TEST(EpochOrder, WithoutShufflingItIsTheSetsOwn) {
  const auto order = all_of({{.size = 5, .seed = 3, .shuffle = false}, 7});
  EXPECT_EQ(order, (std::vector<std::int64_t>{0, 1, 2, 3, 4}));
}

TEST(EpochOrder, AWindowReadsFileAfterFile) {
  const OrderOptions options{.size = 100, .seed = 1, .window = 10, .file_starts = {0, 30, 60}};
  const auto order = all_of({options, 0});
  EXPECT_TRUE(is_permutation_of_all(order));
  // Files have 30, 30 and 40 records: each run of 10 positions lies in one of them.
  std::vector<int> files;
  for (std::size_t at = 0; at < order.size(); at += 10) {
    const auto file = [](std::int64_t index) {
      return static_cast<int>(std::min<std::int64_t>(2, index / 30));
    };
    for (std::size_t i = at; i < at + 10; ++i) ASSERT_EQ(file(order[i]), file(order[at]));
    if (files.empty() || files.back() != file(order[at])) files.push_back(file(order[at]));
  }
  EXPECT_EQ(files.size(), 3U);
  EXPECT_FALSE(std::is_sorted(order.begin(), order.begin() + 10));
  std::set<std::vector<std::int64_t>> seen;
  for (std::uint64_t epoch = 0; epoch < 4; ++epoch) seen.insert(all_of({options, epoch}));
  EXPECT_EQ(seen.size(), 4U);
}

// Each record is as likely in each place: chi-square over 6 places, 0.999 quantile at 5 degrees.
TEST(EpochOrder, NoPlaceIsFavoured) {
  int counts[6][6] = {};
  constexpr int kEpochs = 6000;
  for (std::uint64_t epoch = 0; epoch < kEpochs; ++epoch) {
    const EpochOrder order({.size = 6, .seed = 42}, epoch);
    for (std::int64_t i = 0; i < 6; ++i) ++counts[i][order[i]];
  }
  for (const auto& place : counts) {
    double chi = 0;
    for (const int count : place) chi += (count - 1000.0) * (count - 1000.0) / 1000.0;
    EXPECT_LT(chi, 20.5);
  }
}

}  // namespace
}  // namespace troupe::learners::data
