// Which learner counts for a run of several groups, on a clock of the test's own.
#include "actors/roles/learner_groups.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe::actors {
namespace {

using testing::ElementsAre;

const LearnerGroups::Time kNow{std::chrono::seconds(100)};

TEST(LearnerGroups, FollowTheGenerationsOfAnEarlierSession) {
  LearnerGroups groups(2, {7, 0});
  groups.of(0).asks("learner-0", 0, kNow);
  groups.of(1).asks("learner-1", 0, kNow);
  EXPECT_THAT(groups.tick(kNow), ElementsAre(0, 1));
  EXPECT_EQ(groups.group(0).generation, 8U);
  EXPECT_EQ(groups.group(1).generation, 1U);
  EXPECT_TRUE(groups.tick(kNow).empty());
}

TEST(LearnerGroups, KeepTheirLeadUntilTheGroupHasNobody) {
  LearnerGroups groups(4, {0, 0});
  EXPECT_EQ(groups.leader(), "");
  groups.of(1).asks("learner-2", 0, kNow);
  groups.of(1).asks("learner-3", 0, kNow);
  EXPECT_THAT(groups.tick(kNow), ElementsAre(1));
  EXPECT_EQ(groups.leader(), "learner-2");
  groups.of(0).asks("learner-0", 0, kNow);
  groups.of(0).asks("learner-1", 0, kNow);
  EXPECT_THAT(groups.tick(kNow), ElementsAre(0));
  EXPECT_EQ(groups.leader(), "learner-2");
  groups.of(1).ended("learner-2", kNow);
  EXPECT_EQ(groups.leader(), "learner-3");
  groups.of(1).ended("learner-3", kNow);
  EXPECT_EQ(groups.leader(), "learner-0");
  groups.of(1).asks("learner-2", 0, kNow);
  EXPECT_THAT(groups.tick(kNow), ElementsAre(1));
  EXPECT_EQ(groups.leader(), "learner-0");
}

}  // namespace
}  // namespace troupe::actors
