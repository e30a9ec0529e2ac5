#include "actors/roles/finite_updates.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe::actors {
namespace {

const Error kError{ErrorCode::kNotFinite, "the loss is nan"};

TEST(FiniteUpdates, NamesTheFirstOfARowAndCountsAll) {
  FiniteUpdates updates;
  EXPECT_EQ(updates.failed(kError).value(), true);
  EXPECT_EQ(updates.failed(kError).value(), false);
  updates.good();
  EXPECT_EQ(updates.failed(kError).value(), true);
  EXPECT_EQ(updates.count(), 3U);
}

TEST(FiniteUpdates, GiveUpAfterAHundredInARowOnly) {
  FiniteUpdates updates;
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 99; ++i) ASSERT_TRUE(updates.failed(kError));
    updates.good();
  }
  for (int i = 0; i < 99; ++i) ASSERT_TRUE(updates.failed(kError));
  const auto last = updates.failed(kError);
  ASSERT_FALSE(last);
  EXPECT_EQ(last.error().code, ErrorCode::kNotFinite);
  EXPECT_THAT(last.error().message, testing::HasSubstr("100 updates in a row"));
  EXPECT_THAT(last.error().message, testing::HasSubstr("the loss is nan"));
}

}  // namespace
}  // namespace troupe::actors
