// Credit, resending and acknowledgement, without network or clock.
#include "actors/roles/send_window.hpp"

#include <gtest/gtest.h>

#include <set>

#include "envs/spec/random.hpp"

namespace troupe::actors {
namespace {

using std::chrono::milliseconds;
constexpr SendWindow::Time kStart{std::chrono::seconds{10}};

SendWindow::Payload payload(std::uint8_t byte) {
  return std::make_shared<const std::vector<std::uint8_t>>(3, byte);
}

TEST(SendWindow, SendsNoMoreThanItsCreditUntilAnAnswerComes) {
  SendWindow window(2, milliseconds{1000});
  for (std::uint64_t i = 0; i < 3; ++i) window.add({1, i}, 10, payload(0));
  for (std::uint64_t i = 0; i < 2; ++i) {
    ASSERT_NE(window.next(kStart), nullptr);
    EXPECT_EQ(window.next(kStart)->key.sequence, i);
    window.sent({1, i}, kStart);
  }
  EXPECT_EQ(window.next(kStart), nullptr);
  EXPECT_TRUE(window.full());
  EXPECT_EQ(window.acknowledge({1, 0}), 10U);
  ASSERT_NE(window.next(kStart), nullptr);
  EXPECT_EQ(window.next(kStart)->key.sequence, 2U);
  EXPECT_EQ(window.acknowledge({1, 0}), std::nullopt);  // repeated
  EXPECT_EQ(window.acknowledge({2, 1}), std::nullopt);  // of another incarnation
}

TEST(SendWindow, SendsAgainAfterSilenceAndOnANewConnection) {
  SendWindow window(1, milliseconds{1000});
  window.add({1, 0}, 1, payload(0));
  window.sent({1, 0}, kStart);
  EXPECT_EQ(window.next(kStart + milliseconds{999}), nullptr);
  EXPECT_NE(window.next(kStart + milliseconds{1000}), nullptr);
  window.sent({1, 0}, kStart + milliseconds{1000});
  EXPECT_EQ(window.resent(), 1U);
  EXPECT_EQ(window.next(kStart + milliseconds{1001}), nullptr);
  window.reconnected();
  EXPECT_NE(window.next(kStart + milliseconds{1001}), nullptr);
}

TEST(SendWindow, RestoredMessagesGoOutBeforeNewOnes) {
  SendWindow window(4, milliseconds{1000});
  window.add({1, 8}, 5, payload(8));
  window.add({1, 9}, 6, payload(9));
  std::vector<std::uint8_t> saved, lanes;
  window.save(saved);
  window.save_lanes(lanes);
  SendWindow restored(4, milliseconds{1000});
  restored.add({2, 10}, 1, payload(1));
  ASSERT_TRUE(restored.load(saved, lanes));
  EXPECT_EQ(restored.size(), 3U);
  EXPECT_EQ(restored.next(kStart)->key, (SendWindow::Key{1, 8}));
  EXPECT_EQ(restored.next(kStart)->steps, 5U);
  EXPECT_EQ(*restored.next(kStart)->payload, *payload(8));
  for (std::size_t size = 0; size < saved.size(); ++size) {
    SendWindow other(4, milliseconds{1000});
    EXPECT_FALSE(other.load(std::span(saved.data(), size), lanes));
    EXPECT_EQ(other.size(), 0U);
  }
  for (std::size_t size = 0; size < lanes.size(); ++size) {
    SendWindow other(4, milliseconds{1000});
    EXPECT_FALSE(other.load(saved, std::span(lanes.data(), size)));
    EXPECT_EQ(other.size(), 0U);
  }
}

// A channel that loses messages and answers in both directions: at the end the receiver has each
// message, and thanks to its de-duplication exactly once.
// A run that is resumed with fewer shards: nobody would answer for the lanes that are gone.
TEST(SendWindow, MessagesOfLanesThatAreGoneGoToOthers) {
  SendWindow window(2, milliseconds{1000});
  window.add({1, 0}, 1, payload(0), 0, 2);
  window.sent({1, 0}, kStart);
  window.add({1, 1}, 1, payload(0), 0, 1);
  const auto open = [](std::uint32_t lane) { return lane < 2; };
  window.fold_lanes(2);
  const SendWindow::Entry* first = window.next(kStart, open);
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(first->key.sequence, 0U);
  EXPECT_EQ(first->lane, 0U);
  window.sent({1, 0}, kStart);
  ASSERT_NE(window.next(kStart, open), nullptr);
  EXPECT_EQ(window.next(kStart, open)->lane, 1U);
}

TEST(SendWindow, EveryMessageArrivesOverALossyChannel) {
  Random random(3);
  SendWindow window(3, milliseconds{50});
  std::multiset<std::uint64_t> accepted;
  std::set<std::uint64_t> seen;
  std::uint64_t next = 0;
  SendWindow::Time now = kStart;
  for (int tick = 0; tick < 100000 && (next < 500 || window.size() > 0);
       ++tick, now += milliseconds{1}) {
    if (!window.full() && next < 500) window.add({1, next++}, 1, payload(0));
    while (const SendWindow::Entry* entry = window.next(now)) {
      const SendWindow::Key key = entry->key;
      window.sent(key, now);
      if (random.uniform() < 0.3) continue;
      if (seen.insert(key.sequence).second) accepted.insert(key.sequence);
      if (random.uniform() < 0.3) continue;
      EXPECT_EQ(window.acknowledge(key), 1U);
    }
  }
  EXPECT_EQ(accepted.size(), 500U);
  EXPECT_EQ(window.size(), 0U);
  EXPECT_GT(window.resent(), 0U);
}

TEST(SendWindow, MovesTheMessagesOfALaneThatIsNoMore) {
  SendWindow window(4, milliseconds{50});
  window.add({1, 1}, 10, payload(0), 0, 0);
  window.add({1, 2}, 10, payload(0), 0, 1);
  window.add({1, 3}, 10, payload(0), 0, 1);
  window.sent({1, 2}, kStart);
  window.move_lane(1, 0, false);  // what is on its way there may still be acknowledged
  EXPECT_EQ(window.by_lane(2), (std::vector<std::size_t>{2, 1}));
  EXPECT_EQ(window.next(kStart, [](std::uint32_t lane) { return lane == 1; }), nullptr);
  window.move_lane(1, 0, true);
  EXPECT_EQ(window.by_lane(2), (std::vector<std::size_t>{3, 0}));
  window.sent({1, 1}, kStart);
  EXPECT_EQ(window.next(kStart)->key.sequence, 2U);  // anew
}

}  // namespace
}  // namespace troupe::actors
