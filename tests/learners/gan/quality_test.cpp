// Distances and scores with known values.
#include "learners/gan/quality.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "envs/spec/random.hpp"

namespace troupe::learners {
namespace {

// n rows of two independent normals.
std::vector<float> normals(std::int64_t n, double mean, double deviation, std::uint64_t seed) {
  Random random(seed);
  std::vector<float> rows;
  for (std::int64_t i = 0; i < 2 * n; ++i)
    rows.push_back(static_cast<float>(mean + deviation * random.normal()));
  return rows;
}

TEST(FeatureStatistics, AreTheMomentsOfTheRowsHoweverTheyCome) {
  const std::vector<float> rows{1, 2, 3, 5, 2, -1, 0, 4};
  FeatureStatistics whole(2), first(2), second(2);
  ASSERT_TRUE(whole.add(rows));
  ASSERT_TRUE(first.add(std::span(rows).first(2)));
  ASSERT_TRUE(second.add(std::span(rows).subspan(2)));
  first.merge(second);
  for (const FeatureStatistics* one : {&whole, &first}) {
    EXPECT_EQ(one->mean(), (std::vector<double>{1.5, 2.5}));
    const auto covariance = one->covariance();
    EXPECT_NEAR(covariance[0], 5.0 / 3, 1e-12);  // (.25 + 2.25 + .25 + 2.25) / 3
    EXPECT_NEAR(covariance[1], 0, 1e-12);        // (.25 + 3.75 - 1.75 - 2.25) / 3
    EXPECT_NEAR(covariance[2], covariance[1], 1e-12);
    EXPECT_NEAR(covariance[3], 7, 1e-12);  // (.25 + 6.25 + 12.25 + 2.25) / 3
  }
  EXPECT_FALSE(whole.add(std::vector<float>(3)));
  EXPECT_EQ(whole.add(std::vector<float>{1, NAN}).error().code, ErrorCode::kNotFinite);
  EXPECT_EQ(whole.count(), 4);
}

// For commuting covariances: |m1 - m2|^2 + sum (s1 - s2)^2.
TEST(FrechetDistance, HasItsClosedForm) {
  FeatureStatistics a(2), b(2);
  ASSERT_TRUE(a.add(std::vector<float>{1, 0, -1, 0, 0, 2, 0, -2}));  // variances 2/3, 8/3
  ASSERT_TRUE(b.add(std::vector<float>{5, 1, 1, 1, 3, 1, 3, 1}));    // variances 8/3, 0; mean 3, 1
  const double expected = 9 + 1 + std::pow(std::sqrt(2.0 / 3) - std::sqrt(8.0 / 3), 2) + 8.0 / 3;
  EXPECT_NEAR(*frechet_distance(a, b), expected, 1e-9);
  EXPECT_NEAR(*frechet_distance(b, a), expected, 1e-9);
  EXPECT_NEAR(*frechet_distance(a, a), 0, 1e-9);
}

TEST(FrechetDistance, OfSamplesNearsThatOfTheDistributions) {
  FeatureStatistics a(2), b(2);
  ASSERT_TRUE(a.add(normals(20000, 0, 1, 1)));
  ASSERT_TRUE(b.add(normals(20000, 2, 3, 2)));
  EXPECT_NEAR(*frechet_distance(a, b), 2 * 4 + 2 * 4, 0.4);
}

// Fewer rows than features: a number, never NaN.
TEST(FrechetDistance, ASmallSampleGivesANumber) {
  Random random(4);
  std::vector<float> rows(5 * 64);
  for (float& value : rows) value = static_cast<float>(random.normal());
  FeatureStatistics small(64), other(64), one(64), narrow(3);
  ASSERT_TRUE(small.add(rows));
  ASSERT_TRUE(other.add(std::vector<float>(64 * 4, 0.5F)));
  ASSERT_TRUE(one.add(std::span(rows).first(64)));
  const auto distance = frechet_distance(small, other);
  ASSERT_TRUE(distance);
  EXPECT_TRUE(std::isfinite(*distance));
  EXPECT_GT(*distance, 0);
  EXPECT_FALSE(frechet_distance(small, one));
  EXPECT_FALSE(frechet_distance(small, narrow));
}

TEST(InceptionScore, IsTheNumberOfClassesForSureAndEvenAnswersAndOneForOthers) {
  std::vector<float> sure, even;
  for (int i = 0; i < 40; ++i)
    for (int c = 0; c < 4; ++c) {
      sure.push_back(c == i % 4 ? 1 : 0);
      even.push_back(0.25F);
    }
  EXPECT_NEAR(inception_score(sure, 4, 2)->mean, 4, 1e-9);
  EXPECT_NEAR(inception_score(sure, 4, 2)->deviation, 0, 1e-9);
  EXPECT_NEAR(inception_score(even, 4, 1)->mean, 1, 1e-9);
  EXPECT_FALSE(inception_score(even, 4, 41));
  EXPECT_FALSE(inception_score(even, 3, 1));
}

// Two classes of which one has collapsed to a single picture.
TEST(IntraClassVariance, SeesACollapse) {
  IntraClassVariance variance(3, 2);
  ASSERT_TRUE(variance.add(std::vector<float>{0, 1, 2, 3, 7, 7, 7, 7, 5, 5},
                           std::vector<std::int64_t>{0, 0, 1, 1, 2}));
  EXPECT_NEAR(variance.of_class(0), 2, 1e-12);
  EXPECT_EQ(variance.of_class(1), 0);
  EXPECT_EQ(variance.of_class(2), 0);  // one picture says nothing
  EXPECT_NEAR(variance.mean(), 1, 1e-12);
  EXPECT_FALSE(variance.add(std::vector<float>{0, 1}, std::vector<std::int64_t>{3}));
  EXPECT_FALSE(variance.add(std::vector<float>{0}, std::vector<std::int64_t>{0}));
}

}  // namespace
}  // namespace troupe::learners
