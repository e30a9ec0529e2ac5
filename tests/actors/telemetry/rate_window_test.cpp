// Speeds over a window, with the arithmetic beside.
#include "actors/telemetry/rate_window.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace troupe::actors::telemetry {
namespace {

TEST(RateWindow, KnowsNothingBeforeTwoSamples) {
  RateWindow window;
  EXPECT_TRUE(std::isnan(window.rate(0)));
  window.add(1, 100);
  EXPECT_TRUE(std::isnan(window.rate(1)));
}

TEST(RateWindow, IsTheSlopeOverTheHorizon) {
  RateWindow window;
  for (int t = 0; t <= 20; ++t) window.add(t, t * 50.0);
  for (int t = 21; t <= 40; ++t) window.add(t, 1000 + (t - 20) * 10.0);
  EXPECT_DOUBLE_EQ(window.rate(40, 10), 10);                   // (1200 - 1100) / 10
  EXPECT_DOUBLE_EQ(window.rate(40, 40), 1200.0 / 40);          // the whole of it
  EXPECT_DOUBLE_EQ(window.rate(25, 10), (1200 - 750) / 25.0);  // from t = 15 to the last sample
}

TEST(RateWindow, FallsWhenNothingComes) {
  RateWindow window;
  for (int t = 0; t <= 10; ++t) window.add(t, t * 100.0);
  EXPECT_DOUBLE_EQ(window.rate(12), 100 * 8 / 8.0);  // within 3 s nothing is concluded
  EXPECT_LT(window.rate(18), 50);
  EXPECT_DOUBLE_EQ(window.rate(60), 0);
}

TEST(RateWindow, BeginsAnewWhenTheTotalFalls) {
  RateWindow window;
  window.add(0, 1000);
  window.add(1, 1100);
  window.add(2, 5);
  EXPECT_TRUE(std::isnan(window.rate(2)));
  window.add(3, 12);
  EXPECT_DOUBLE_EQ(window.rate(3), 7);
}

TEST(RateWindow, MergesSamplesThatCrowd) {
  RateWindow window;
  for (int i = 0; i <= 10000; ++i) window.add(i * 0.001, i);
  EXPECT_NEAR(window.rate(10, 5), 1000, 1e-6);
}

}  // namespace
}  // namespace troupe::actors::telemetry
