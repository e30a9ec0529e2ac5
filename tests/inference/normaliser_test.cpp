// Running statistics against two-pass sums; merging; encoding; scaling.
#include "models/inference/normaliser.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "envs/spec/random.hpp"

namespace troupe::models {
namespace {

using Row = std::vector<float>;

std::vector<Row> rows(int count, std::uint64_t seed) {
  Random random(seed);
  std::vector<Row> result;
  for (int i = 0; i < count; ++i)
    result.push_back({static_cast<float>(1000 + random.normal()),
                      static_cast<float>(5 * random.normal()), 2.0F});
  return result;
}

RunningStatistics gathered(const std::vector<Row>& values) {
  RunningStatistics statistics(3);
  for (const Row& row : values) EXPECT_TRUE(statistics.add(row));
  return statistics;
}

TEST(RunningStatistics, AgreeWithTwoPasses) {
  const std::vector<Row> values = rows(500, 1);
  const RunningStatistics statistics = gathered(values);
  for (std::size_t i = 0; i < 3; ++i) {
    double mean = 0, variance = 0;
    for (const Row& row : values) mean += static_cast<double>(row[i]) / 500;
    for (const Row& row : values) variance += std::pow(static_cast<double>(row[i]) - mean, 2) / 500;
    EXPECT_NEAR(statistics.mean()[i], mean, 1e-9);
    EXPECT_NEAR(statistics.variance()[i], variance, 1e-8);
  }
}

TEST(RunningStatistics, MergedPartsEqualTheWhole) {
  const std::vector<Row> values = rows(300, 2);
  RunningStatistics first = gathered({values.begin(), values.begin() + 70});
  ASSERT_TRUE(first.merge(RunningStatistics(3)));
  ASSERT_TRUE(first.merge(gathered({values.begin() + 70, values.end()})));
  const RunningStatistics whole = gathered(values);
  EXPECT_EQ(first.count(), whole.count());
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_NEAR(first.mean()[i], whole.mean()[i], 1e-9);
    EXPECT_NEAR(first.variance()[i], whole.variance()[i], 1e-8);
  }
}

TEST(RunningStatistics, HaveUnitVarianceUntilTwoObservationsAreKnown) {
  RunningStatistics statistics(2);
  EXPECT_EQ(statistics.variance(), (std::vector<double>{1, 1}));
  ASSERT_TRUE(statistics.add(Row{3, 4}));
  EXPECT_EQ(statistics.variance(), (std::vector<double>{1, 1}));
}

TEST(RunningStatistics, RefuseWhatIsNotFiniteAndStayAsTheyWere) {
  RunningStatistics statistics = gathered(rows(5, 3));
  const RunningStatistics before = statistics;
  const Result<void> added = statistics.add(Row{0, std::nanf(""), 0});
  ASSERT_FALSE(added);
  EXPECT_EQ(added.error().code, ErrorCode::kNotFinite);
  EXPECT_EQ(statistics, before);
}

TEST(RunningStatistics, RefuseOtherSizes) {
  RunningStatistics statistics(3);
  EXPECT_FALSE(statistics.add(Row{1, 2}));
  EXPECT_FALSE(statistics.merge(RunningStatistics(4)));
}

TEST(RunningStatistics, SurviveTheWireBitForBit) {
  const RunningStatistics statistics = gathered(rows(50, 4));
  const Result<RunningStatistics> decoded = RunningStatistics::decode(statistics.encode());
  ASSERT_TRUE(decoded);
  EXPECT_EQ(*decoded, statistics);
}

TEST(RunningStatistics, RefuseEveryTruncationAndEveryFlippedBit) {
  const std::vector<std::uint8_t> bytes = gathered(rows(5, 5)).encode();
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(RunningStatistics::decode(std::span(bytes).first(size))) << size;
  for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    std::vector<std::uint8_t> damaged = bytes;
    damaged[bit / 8] ^= static_cast<std::uint8_t>(1U << (bit % 8));
    EXPECT_FALSE(RunningStatistics::decode(damaged)) << bit;
  }
}

TEST(ObservationScale, CentresScalesAndClips) {
  const Row mean = {1, 2}, variance = {4, 0};
  const ObservationScale scale(mean, variance);
  const Row observations = {5, 2, 1, 3, -100, 2};
  Row scaled(6);
  scale.apply(observations, scaled);
  EXPECT_FLOAT_EQ(scaled[0], 2);
  EXPECT_FLOAT_EQ(scaled[1], 0);
  EXPECT_FLOAT_EQ(scaled[2], 0);
  EXPECT_FLOAT_EQ(scaled[3], 10);
  EXPECT_FLOAT_EQ(scaled[4], -10);
}

}  // namespace
}  // namespace troupe::models
