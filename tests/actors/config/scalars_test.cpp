// The scalar forms of YAML 1.2's core schema, and durations.
#include "actors/config/scalars.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

namespace troupe::actors {
namespace {

using testing::Eq;
using testing::Optional;

TEST(ScalarsTest, NumbersOfTheCoreSchemaAreNumbers) {
  EXPECT_THAT(core_number("1e-4"), Optional(1e-4));
  EXPECT_THAT(core_number("1e4"), Optional(1e4));
  EXPECT_THAT(core_number("1E+4"), Optional(1e4));
  EXPECT_THAT(core_number(".5"), Optional(0.5));
  EXPECT_THAT(core_number("-.5"), Optional(-0.5));
  EXPECT_THAT(core_number("+1."), Optional(1.0));
  EXPECT_THAT(core_number("0x10"), Optional(16.0));
  EXPECT_THAT(core_number("010"), Optional(10.0));
  EXPECT_THAT(core_number("-.inf"), Optional(-std::numeric_limits<double>::infinity()));
  EXPECT_TRUE(std::isnan(core_number(".nan").value()));
}

TEST(ScalarsTest, OtherWordsAreNoNumbers) {
  for (const char* text :
       {"",   "1_000", "e4",    "1e",  "1e+", ".",  "-",  "+-1", "--.inf", "1,5",
        "0x", "0xg",   "1.2.3", "inf", "nan", " 1", "1 ", "1f",  "0b1",    "1:30"}) {
    EXPECT_EQ(core_number(text), std::nullopt) << text;
  }
}

TEST(ScalarsTest, NumbersBeyondDoubleAreInfiniteOrZero) {
  EXPECT_THAT(core_number("1e999"), Optional(std::numeric_limits<double>::infinity()));
  EXPECT_THAT(core_number("-1e999"), Optional(-std::numeric_limits<double>::infinity()));
  EXPECT_THAT(core_number("1e-999"), Optional(0.0));
}

TEST(ScalarsTest, IntegersKnowThreeBasesAndSixtyFourBits) {
  EXPECT_EQ(core_integer("-17")->value, -17);
  EXPECT_EQ(core_integer("0x1F")->value, 31);
  EXPECT_EQ(core_integer("0o17")->value, 15);
  EXPECT_EQ(core_integer("9223372036854775807")->value, std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(core_integer("-9223372036854775808")->value, std::numeric_limits<std::int64_t>::min());
  EXPECT_FALSE(core_integer("9223372036854775808")->in_range);
  EXPECT_FALSE(core_integer("99999999999999999999999")->in_range);
  EXPECT_EQ(core_integer("1e6"), std::nullopt);
  EXPECT_EQ(core_integer("1.0"), std::nullopt);
  EXPECT_EQ(core_integer("-0x10"), std::nullopt);
}

TEST(ScalarsTest, OnlyTrueAndFalseAreBooleans) {
  EXPECT_THAT(core_boolean("true"), Optional(true));
  EXPECT_THAT(core_boolean("FALSE"), Optional(false));
  for (const char* text : {"yes", "no", "on", "off", "y", "1", "tRUE", ""}) {
    EXPECT_EQ(core_boolean(text), std::nullopt) << text;
  }
}

TEST(ScalarsTest, DurationsNeedAUnit) {
  EXPECT_THAT(duration_from("500ms"), Optional(Duration(500)));
  EXPECT_THAT(duration_from("60s"), Optional(Duration(60000)));
  EXPECT_THAT(duration_from("0.1s"), Optional(Duration(100)));
  EXPECT_THAT(duration_from("5m"), Optional(Duration(300000)));
  EXPECT_THAT(duration_from("1.5h"), Optional(Duration(5400000)));
  for (const char* text : {"60", "s", "", "-1s", "1e3s", "60 s", "0.5ms", "1h30m", "1.s", "60S",
                           "99999999999999999999h"}) {
    EXPECT_EQ(duration_from(text), std::nullopt) << text;
  }
}

TEST(ScalarsTest, TextsReadBackAsTheSameValue) {
  for (const double value : {0.1, 1e-4, 1e22, -0.0, 5e-324, 1.7976931348623157e308, 1.0 / 3}) {
    EXPECT_THAT(core_number(text_of(value)), Optional(value));
  }
  for (const std::int64_t value : {0, 1, 999, 1000, 1500, 60000, 90000, 3600000, 5400000}) {
    EXPECT_THAT(duration_from(text_of(Duration(value))), Optional(Duration(value)));
  }
  EXPECT_EQ(text_of(1e-4), "1e-4");
  EXPECT_EQ(text_of(1e12), "1e12");
  EXPECT_EQ(text_of(1.5e-17), "1.5e-17");
  EXPECT_THAT(text_of(Duration(90000)), Eq("90s"));
  EXPECT_THAT(text_of(Duration(7200000)), Eq("2h"));
}

}  // namespace
}  // namespace troupe::actors
