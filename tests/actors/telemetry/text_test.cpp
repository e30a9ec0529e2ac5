// Numbers, durations and curves as text.
#include "actors/telemetry/text.hpp"

#include <gmock/gmock.h>

#include <cmath>

namespace troupe::actors::telemetry {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Text, NumbersKeepThreeDigits) {
  EXPECT_EQ(format_number(0), "0");
  EXPECT_EQ(format_number(7.254), "7.25");
  EXPECT_EQ(format_number(63.84), "63.8");
  EXPECT_EQ(format_number(-812), "-812");
  EXPECT_EQ(format_number(812.4), "812");
  EXPECT_EQ(format_number(999.7), "1.00k");
  EXPECT_EQ(format_number(31200), "31.2k");
  EXPECT_EQ(format_number(1.5e6), "1.50M");
  EXPECT_EQ(format_number(0.0001), "1.0e-04");
  EXPECT_EQ(format_number(1e30), "1.00e+30");
  EXPECT_EQ(format_number(std::nan("")), "-");
  EXPECT_EQ(format_number(-INFINITY), "-inf");
}

TEST(Text, DurationsReadLikeAClock) {
  EXPECT_EQ(format_duration(0), "0:00");
  EXPECT_EQ(format_duration(59.6), "1:00");
  EXPECT_EQ(format_duration(3599), "59:59");
  EXPECT_EQ(format_duration(11229), "3:07:09");
  EXPECT_EQ(format_duration(std::nan("")), "-");
  EXPECT_EQ(format_duration(INFINITY), "-");
}

TEST(Text, ClippingAndPaddingCountColumnsNotBytes) {
  EXPECT_EQ(columns_of("\xe2\xa0\x81x"), 2u);
  EXPECT_EQ(clip("abcdef", 4), "abc>");
  EXPECT_EQ(clip("\xe2\xa0\x81\xe2\xa0\x81\xe2\xa0\x81", 2), "\xe2\xa0\x81>");
  EXPECT_EQ(clip("abc", 3), "abc");
  EXPECT_EQ(clip("abc", 0), "");
  EXPECT_EQ(pad("ab", 4), "ab  ");
  EXPECT_EQ(pad("abcdef", 4), "abc>");
}

TEST(Text, APlotPutsTheHighestAtTheTopAndTheLatestAtTheRight) {
  EXPECT_THAT(plot({{0, 0}, {1, 1}, {2, 2}}, 3, 3, false), ElementsAre("  *", " * ", "*  "));
  // One braille cell is 2 x 4 dots: the corners are bits 0x40 (lower left) and 0x08 (upper right).
  EXPECT_THAT(plot({{0, 0}, {1, 1}}, 1, 1, true), ElementsAre("\xe2\xa1\x88"));
}

TEST(Text, APlotSurvivesWhatIsNotFiniteOrFlat) {
  EXPECT_THAT(plot({{0, std::nan("")}, {1, INFINITY}}, 2, 1, false), ElementsAre("  "));
  EXPECT_THAT(plot({{5, 5}}, 3, 3, false), ElementsAre("   ", " * ", "   "));
  EXPECT_THAT(plot({{0, -1.7e308}, {1, 1.7e308}}, 2, 2, false), ElementsAre(" *", "* "));
  EXPECT_TRUE(plot({{0, 0}}, 0, 5, true).empty());
}

RunStatus full_status() {
  RunStatus status;
  status.state = "running";
  status.elapsed = 42;
  status.eta = 190;
  status.target_actor_steps = 100000;
  status.evaluation_return = 812.4;
  status.recent_return = 640.2;
  status.steps_per_second = 512;
  status.updates_per_second = 64.1;
  status.samples_per_insert = 63.8;
  status.samples_per_insert_configured = 64;
  status.policy_lag = 12;
  status.waits = {{.role = "environment_actor", .on = "credit", .share = 0.43}};
  return status;
}

TEST(Text, TheProgressLineHoldsEverything) {
  EXPECT_EQ(progress_line(full_status(), 31200, 7100, 400),
            "0:42 ETA 3:10  steps 31.2k/100k (31 %)  eval 812  return 640  512 steps/s  "
            "64.1 updates/s  SPI 63.8/64  lag 12  waits: environment actor on credit 43 %  "
            "updates 7.10k");
}

TEST(Text, TheProgressLineFitsEveryWidth) {
  for (std::size_t columns = 0; columns < 200; ++columns) {
    EXPECT_LE(columns_of(progress_line(full_status(), 31200, 7100, columns)), columns);
  }
  EXPECT_EQ(progress_line(full_status(), 31200, 7100, 40),
            "0:42 ETA 3:10  steps 31.2k/100k (31 %)");
}

TEST(Text, AFinishedRunSaysSo) {
  RunStatus status = full_status();
  status.state = "finished";
  EXPECT_THAT(progress_line(status, 100000, 9, 400), ::testing::StartsWith("finished 0:42  steps"));
}

}  // namespace
}  // namespace troupe::actors::telemetry
