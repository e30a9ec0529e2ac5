#include "actors/runtime/liveness.hpp"

#include <gtest/gtest.h>

namespace troupe::actors {
namespace {

using namespace std::chrono_literals;
const Liveness::Time kStart{};

TEST(Liveness, PingsAreDueOncePerInterval) {
  Liveness node({}, kStart);
  EXPECT_EQ(node.ping_due(kStart), 1u);
  EXPECT_EQ(node.ping_due(kStart + 999ms), std::nullopt);
  EXPECT_EQ(node.ping_due(kStart + 1000ms), 2u);
}

TEST(Liveness, ThreeMissedAreSilentAndEightAreLost) {
  Liveness node({}, kStart);
  // Ping n leaves at second n - 1; by then n - 1 pings were missed.
  for (int missed = 0; missed <= 9; ++missed) {
    node.ping_due(kStart + missed * 1s);
    const Health expected =
        missed >= 8 ? Health::kLost : (missed >= 3 ? Health::kSilent : Health::kAlive);
    EXPECT_EQ(node.health(), expected) << missed;
    EXPECT_EQ(node.missed(), missed);
  }
}

TEST(Liveness, AnAnswerBringsASilentNodeBack) {
  Liveness node({}, kStart);
  for (int i = 0; i < 5; ++i) node.ping_due(kStart + i * 1s);
  ASSERT_EQ(node.health(), Health::kSilent);
  node.pong(5, kStart + 4s + 30ms);
  EXPECT_EQ(node.health(), Health::kAlive);
  EXPECT_EQ(node.round_trip(), std::chrono::nanoseconds(30ms));
}

TEST(Liveness, ALateAnswerCountsAsASignOfLifeButNotAsARoundTrip) {
  Liveness node({}, kStart);
  for (int i = 0; i < 5; ++i) node.ping_due(kStart + i * 1s);
  node.pong(2, kStart + 4s);
  EXPECT_EQ(node.missed(), 0);
  EXPECT_EQ(node.round_trip(), std::nullopt);
}

TEST(Liveness, ForgedAndRepeatedAnswersAreIgnored) {
  Liveness node({}, kStart);
  node.ping_due(kStart);
  node.pong(1, kStart);
  for (int i = 1; i <= 4; ++i) node.ping_due(kStart + i * 1s);
  ASSERT_EQ(node.health(), Health::kSilent);
  node.pong(1, kStart + 5s);
  node.pong(99, kStart + 5s);
  EXPECT_EQ(node.health(), Health::kSilent);
}

TEST(Liveness, AFrozenObserverBlamesNobody) {
  Liveness node({}, kStart);
  node.ping_due(kStart);
  node.ping_due(kStart + 1h);
  EXPECT_EQ(node.missed(), 1);
  EXPECT_EQ(node.health(), Health::kAlive);
}

TEST(Liveness, TheLimitFollowsFromATime) {
  const auto options = LivenessOptions::lost_after(4500ms);
  EXPECT_EQ(options.lost_missed, 5);
  EXPECT_EQ(options.silent_missed, 3);
  EXPECT_EQ(LivenessOptions::lost_after(2s).silent_missed, 2);
}

}  // namespace
}  // namespace troupe::actors
