// Edit distances by hand, and which slips are answered.
#include "actors/config/nearest.hpp"

#include <gtest/gtest.h>

namespace troupe::actors {
namespace {

TEST(NearestTest, CountsEachKindOfSlipOnce) {
  EXPECT_EQ(edit_distance("batch", "batch"), 0u);
  EXPECT_EQ(edit_distance("bach", "batch"), 1u);    // missing
  EXPECT_EQ(edit_distance("baatch", "batch"), 1u);  // doubled
  EXPECT_EQ(edit_distance("batsh", "batch"), 1u);   // replaced
  EXPECT_EQ(edit_distance("abtch", "batch"), 1u);   // swapped
  EXPECT_EQ(edit_distance("Batch", "batch"), 0u);   // case
  EXPECT_EQ(edit_distance("", "batch"), 5u);
  EXPECT_EQ(edit_distance("ca", "abc"), 3u);  // no edits inside a swapped pair
}

TEST(NearestTest, FindsTheNearestName) {
  EXPECT_EQ(nearest_name("lerning_rate", {"discount", "learning_rate", "policy_learning_rate"}),
            "learning_rate");
  EXPECT_EQ(nearest_name("rnu", {"run", "watch"}), "run");
}

TEST(NearestTest, StaysSilentWhenNothingIsNear) {
  EXPECT_EQ(nearest_name("frobnicate", {"discount", "batch"}), "");
  EXPECT_EQ(nearest_name("x", {"batch"}), "");
  EXPECT_EQ(nearest_name("", {"batch"}), "");
  EXPECT_EQ(nearest_name("batch", {}), "");
}

TEST(NearestTest, CompletesABeginning) {
  EXPECT_EQ(nearest_name("env", {"seed", "environment"}), "environment");
}

}  // namespace
}  // namespace troupe::actors
