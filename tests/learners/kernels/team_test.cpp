// A team runs every index, meets when told to, and can be used again and again.
#include "learners/kernels/team.hpp"

#include <gtest/gtest.h>

namespace troupe::learners::kernels {
namespace {

TEST(Team, EveryMemberWorksOnceInEveryRun) {
  for (const int size : {1, 2, 3, 5}) {
    Team team(size);
    std::vector<int> calls(static_cast<std::size_t>(size));
    for (int run = 1; run <= 200; ++run) {
      team.run([&](int member) { ++calls[static_cast<std::size_t>(member)]; });
      for (const int count : calls) ASSERT_EQ(count, run);
    }
  }
}

TEST(Team, AfterAMeetingEveryoneSeesWhatTheOthersWrote) {
  constexpr int kSize = 3;
  Team team(kSize);
  std::vector<int> before(kSize), sums(kSize);
  for (int run = 0; run < 300; ++run) {
    team.run([&](int member) {
      before[static_cast<std::size_t>(member)] = run + member;
      team.meet();
      int sum = 0;
      for (const int value : before) sum += value;
      team.meet();
      before[static_cast<std::size_t>(member)] = -1;
      sums[static_cast<std::size_t>(member)] = sum;
    });
    for (const int sum : sums) ASSERT_EQ(sum, 3 * run + 3);
  }
}

TEST(Team, IndexZeroRunsOnTheCallingThread) {
  Team team(2);
  std::thread::id first, second;
  team.run([&](int member) { (member == 0 ? first : second) = std::this_thread::get_id(); });
  EXPECT_EQ(first, std::this_thread::get_id());
  EXPECT_NE(second, first);
}

}  // namespace
}  // namespace troupe::learners::kernels
