// How many may knock at once, and how much is said about them.
#include "actors/runtime/strangers.hpp"

#include <gmock/gmock.h>

namespace troupe::actors {
namespace {

using std::chrono::seconds;

TEST(Lobby, TheOldestOfTheSameAddressMakesRoom) {
  Lobby lobby({.most = 4, .most_per_address = 2});
  EXPECT_FALSE(lobby.enter(1, "a"));
  EXPECT_FALSE(lobby.enter(2, "b"));
  EXPECT_FALSE(lobby.enter(3, "a"));
  EXPECT_EQ(lobby.enter(4, "a")->id, 1u);
  EXPECT_EQ(lobby.enter(5, "a")->id, 3u);
  EXPECT_EQ(lobby.size(), 3u);
}

TEST(Lobby, TheOldestOfAllMakesRoomWhereAddressesAreMany) {
  Lobby lobby({.most = 3, .most_per_address = 2});
  for (std::uint64_t id = 1; id <= 3; ++id) EXPECT_FALSE(lobby.enter(id, std::to_string(id)));
  const auto leaves = lobby.enter(4, "4");
  EXPECT_EQ(leaves->id, 1u);
  EXPECT_EQ(leaves->address, "1");
  EXPECT_EQ(lobby.size(), 3u);
}

TEST(Lobby, WhoeverLeavesFreesHisPlaceOnce) {
  Lobby lobby({.most = 1, .most_per_address = 1});
  lobby.enter(1, "a");
  lobby.leave(1);
  lobby.leave(1);
  EXPECT_EQ(lobby.size(), 0u);
  EXPECT_FALSE(lobby.enter(2, "a"));
}

TEST(StrangerLog, ABurstIsNamedThenCounted) {
  StrangerLog log;
  StrangerLog::Time now{std::chrono::hours(1)};
  int named = 0;
  for (int i = 0; i < 10000; ++i)
    if (log.dropped("10.0.0.1:" + std::to_string(i), "it does not speak TLS", now)) ++named;
  EXPECT_EQ(named, StrangerLog::kLines);
  EXPECT_EQ(log.total(), 10000u);
  EXPECT_FALSE(log.summary(now + seconds(9)));
  EXPECT_EQ(log.summary(now + seconds(10)),
            "dropped 9995 more connections, the last because it does not speak TLS");
  EXPECT_FALSE(log.summary(now + seconds(20)));
  EXPECT_TRUE(log.dropped("10.0.0.2:1", "it hung up", now + seconds(21)));
}

TEST(StrangerLog, ABurstOfOneReasonHidesNoOther) {
  StrangerLog log;
  const StrangerLog::Time now{std::chrono::hours(1)};
  for (int i = 0; i < 100; ++i) log.dropped("10.0.0.1", "it does not speak TLS", now);
  EXPECT_TRUE(log.dropped("10.0.0.2", "its certificate has expired", now));
  EXPECT_FALSE(log.dropped("10.0.0.3", "its certificate has expired", now));
}

TEST(StrangerLog, ReasonsAreBoundedInNumber) {
  StrangerLog log;
  for (int i = 0; i < 1000; ++i) log.dropped("a", "reason " + std::to_string(i), {});
  EXPECT_EQ(log.by_reason().size(), StrangerLog::kMostReasons);
}

}  // namespace
}  // namespace troupe::actors
