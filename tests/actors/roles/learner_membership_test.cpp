// The groups of learners, walked step by step on a clock of the test's own.
#include "actors/roles/learner_membership.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe::actors {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;

class Membership : public testing::Test {
 protected:
  void pass(int ms) { now_ += milliseconds(ms); }
  void asks(const std::string& name, std::uint32_t generation) {
    membership_.asks(name, generation, now_);
  }
  std::optional<LearnerGrouping> tick() { return membership_.tick(now_); }
  // Both serve and train together.
  void begin() {
    asks("learner-0", 0);
    asks("learner-1", 0);
    ASSERT_TRUE(tick());
  }

  LearnerMembership::Time now_{std::chrono::seconds(100)};
  LearnerMembership membership_{2};
};

TEST_F(Membership, TheFirstGroupWaitsForAllLearners) {
  asks("learner-1", 0);
  pass(5000);
  EXPECT_FALSE(tick());
  asks("learner-0", 0);
  const auto group = tick();
  ASSERT_TRUE(group);
  EXPECT_EQ(group->generation, 1U);
  EXPECT_THAT(group->members, ElementsAre("learner-0", "learner-1"));
  EXPECT_EQ(membership_.leader(), "learner-0");
  EXPECT_FALSE(tick());
}

TEST_F(Membership, TheFirstGroupDoesNotWaitForEver) {
  asks("learner-1", 0);
  pass(20000);
  const auto group = tick();
  ASSERT_TRUE(group);
  EXPECT_THAT(group->members, ElementsAre("learner-1"));
}

TEST_F(Membership, ASurvivorGoesOnAloneAsSoonAsItKnows) {
  begin();
  membership_.ended("learner-0", now_);
  EXPECT_EQ(membership_.leader(), "learner-1");
  EXPECT_FALSE(tick());  // the survivor has not noticed
  asks("learner-1", 1);
  const auto group = tick();
  ASSERT_TRUE(group);
  EXPECT_EQ(group->generation, 2U);
  EXPECT_THAT(group->members, ElementsAre("learner-1"));
}

TEST_F(Membership, WhoComesBackJoinsAtOnceAndDoesNotLead) {
  begin();
  membership_.ended("learner-0", now_);
  asks("learner-1", 1);
  ASSERT_TRUE(tick());
  asks("learner-0", 0);
  const auto group = tick();
  ASSERT_TRUE(group);
  EXPECT_EQ(group->generation, 3U);
  EXPECT_THAT(group->members, ElementsAre("learner-1", "learner-0"));
}

TEST_F(Membership, AFrozenMemberIsLeftOutUntilItAsks) {
  begin();
  asks("learner-1", 1);  // its group has failed it
  pass(500);
  EXPECT_FALSE(tick());  // the other one may say so too
  pass(500);
  const auto alone = tick();
  ASSERT_TRUE(alone);
  EXPECT_THAT(alone->members, ElementsAre("learner-1"));
  asks("learner-0", 1);
  const auto both = tick();
  ASSERT_TRUE(both);
  EXPECT_THAT(both->members, ElementsAre("learner-1", "learner-0"));
}

TEST_F(Membership, MembersThatFailTogetherStayTogether) {
  begin();
  asks("learner-1", 1);
  asks("learner-0", 1);
  const auto group = tick();
  ASSERT_TRUE(group);
  EXPECT_THAT(group->members, ElementsAre("learner-0", "learner-1"));
}

TEST_F(Membership, AWordThatCrossedTheNextGroupDoesNotBreakIt) {
  begin();
  membership_.ended("learner-0", now_);
  asks("learner-1", 1);
  asks("learner-0", 0);
  ASSERT_TRUE(tick());   // generation 2, of both
  asks("learner-1", 1);  // said before it heard of generation 2
  pass(5000);
  EXPECT_FALSE(tick());
  asks("learner-1", 2);
  pass(1000);
  EXPECT_TRUE(tick());
}

TEST_F(Membership, OneThatLeavesInOrderIsLeftOutOfTheNextGroupAtOnce) {
  begin();
  membership_.leaves("learner-0");
  EXPECT_EQ(membership_.leader(), "learner-1");
  const auto group = tick();
  ASSERT_TRUE(group);
  EXPECT_EQ(group->generation, 2U);
  EXPECT_THAT(group->members, ElementsAre("learner-1"));
  membership_.ended("learner-0", now_);  // as it was told to
  pass(5000);
  EXPECT_FALSE(tick());
}

TEST_F(Membership, AfterTheDeathOfAllWhoeverIsThereBegins) {
  begin();
  membership_.ended("learner-0", now_);
  membership_.ended("learner-1", now_);
  EXPECT_EQ(membership_.leader(), "");
  pass(1000);
  EXPECT_FALSE(tick());
  asks("learner-1", 0);
  const auto group = tick();
  ASSERT_TRUE(group);
  EXPECT_EQ(group->generation, 2U);
  EXPECT_THAT(group->members, ElementsAre("learner-1"));
}

}  // namespace
}  // namespace troupe::actors
