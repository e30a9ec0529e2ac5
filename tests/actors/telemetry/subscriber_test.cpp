// Exact counting of what was missed.
#include "actors/telemetry/subscriber.hpp"

#include <gtest/gtest.h>

namespace troupe::actors::telemetry {
namespace {

Message event(std::uint64_t sequence, std::uint64_t session = 1) {
  Message message;
  message.session = session;
  message.sequence = sequence;
  message.payload = Event{};
  return message;
}

Message metrics(std::uint64_t sequence) {
  Message message = event(sequence);
  message.payload = Metrics{};
  return message;
}

TEST(SequenceTracker, CountsJumpsPerKind) {
  SequenceTracker tracker;
  EXPECT_EQ(tracker.observe(event(5)).lost, 0u);  // the first one seen is the start
  EXPECT_EQ(tracker.observe(metrics(1)).lost, 0u);
  EXPECT_EQ(tracker.observe(event(6)).lost, 0u);
  EXPECT_EQ(tracker.observe(event(10)).lost, 3u);
  EXPECT_EQ(tracker.observe(metrics(3)).lost, 1u);
  EXPECT_EQ(tracker.lost(), 4u);
}

TEST(SequenceTracker, StartsFromASnapshotAndSkipsWhatItHolds) {
  SequenceTracker tracker;
  Snapshot snapshot;
  snapshot.session = 1;
  snapshot.sequences[static_cast<std::size_t>(Kind::kEvents)] = 7;
  tracker.start(snapshot);
  EXPECT_FALSE(tracker.observe(event(6)).is_new);
  EXPECT_FALSE(tracker.observe(event(7)).is_new);
  EXPECT_TRUE(tracker.observe(event(8)).is_new);
  EXPECT_EQ(tracker.lost(), 0u);
  EXPECT_EQ(tracker.observe(event(11)).lost, 2u);
  EXPECT_EQ(tracker.observe(metrics(3)).lost, 2u);  // the snapshot had none yet
}

TEST(SequenceTracker, ANewSessionIsNoLoss) {
  SequenceTracker tracker;
  tracker.observe(event(100, 1));
  EXPECT_EQ(tracker.observe(event(1, 2)).lost, 0u);
  EXPECT_TRUE(tracker.observe(event(2, 2)).is_new);
  EXPECT_EQ(tracker.lost(), 0u);
}

TEST(Subscriber, AnAddressThatIsNoneIsNamed) {
  const auto subscriber = Subscriber::open("localhost");
  ASSERT_FALSE(subscriber);
  EXPECT_EQ(subscriber.error().code, ErrorCode::kInvalidArgument);
  EXPECT_NE(subscriber.error().message.find("'localhost'"), std::string::npos);
}

TEST(Subscriber, NobodyThereIsATimeout) {
  auto subscriber = Subscriber::open("ipc:///tmp/telemetry-nobody-listens-here");
  ASSERT_TRUE(subscriber);
  const auto snapshot = subscriber->snapshot("ipc:///tmp/telemetry-nobody-listens-here.snapshot",
                                             std::chrono::milliseconds(20));
  ASSERT_FALSE(snapshot);
  EXPECT_EQ(snapshot.error().code, ErrorCode::kTimeout);
}

}  // namespace
}  // namespace troupe::actors::telemetry
