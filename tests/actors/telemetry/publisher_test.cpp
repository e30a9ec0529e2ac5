// The publisher against real subscribers: what arrives, what is lost and counted, and what never
// blocks.
#include "actors/telemetry/publisher.hpp"

#include <gmock/gmock.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <zmq.hpp>

#include "actors/telemetry/subscriber.hpp"

namespace troupe::actors::telemetry {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

Message event(const std::string& text) {
  Message message;
  message.node = "test";
  message.payload = Event{.text = text};
  return message;
}

Message metrics(const std::string& node, double value) {
  Message message;
  message.node = node;
  message.payload = Metrics{{"value", value}};
  return message;
}

Publisher open_publisher() {
  auto publisher = Publisher::open({.run = "run-1", .linger = milliseconds(0)});
  if (!publisher) throw std::runtime_error(publisher.error().message);
  return std::move(*publisher);
}

// Publishes until the subscriber's connection stands and the first message is through.
void connect(Publisher& publisher, Subscriber& subscriber) {
  do {
    publisher.publish(event("hello"));
  } while (!subscriber.receive(milliseconds(10)));
}

Result<Snapshot> ask(Publisher& publisher, Subscriber& subscriber) {
  auto answer = std::async(std::launch::async, [&] {
    return subscriber.snapshot(publisher.snapshot_endpoint(), milliseconds(20000));
  });
  while (answer.wait_for(milliseconds(1)) != std::future_status::ready) publisher.serve_snapshots();
  return answer.get();
}

std::size_t open_files() {
  return static_cast<std::size_t>(
      std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}));
}

std::size_t resident_bytes() {
  std::size_t total = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> total >> resident;
  return resident * static_cast<std::size_t>(::getpagesize());
}

TEST(Publisher, StampsWhatItSends) {
  Publisher publisher = open_publisher();
  auto subscriber = Subscriber::open(publisher.endpoint());
  connect(publisher, *subscriber);
  Message status;
  status.node = "run";
  status.payload = RunStatus{};
  publisher.publish(status);
  std::optional<Subscriber::Received> received;
  do {
    received = subscriber->receive(milliseconds(20000));
    ASSERT_TRUE(received && received->message);
  } while (received->message->kind() != Kind::kStatus);
  const Message& message = *received->message;
  EXPECT_EQ(message.run, "run-1");
  EXPECT_EQ(message.session, publisher.session());
  EXPECT_EQ(message.sequence, 1u);
  EXPECT_GT(message.time, 1.7e9);
  EXPECT_EQ(std::get<RunStatus>(message.payload).endpoint, publisher.endpoint());
  EXPECT_EQ(std::get<RunStatus>(message.payload).snapshot_endpoint, publisher.snapshot_endpoint());
}

TEST(Publisher, WildcardPortsAreResolved) {
  const Publisher publisher = open_publisher();
  EXPECT_THAT(publisher.endpoint(), ::testing::MatchesRegex("tcp://127.0.0.1:[0-9]+"));
  EXPECT_THAT(publisher.snapshot_endpoint(), ::testing::MatchesRegex("tcp://127.0.0.1:[0-9]+"));
  EXPECT_NE(publisher.endpoint(), publisher.snapshot_endpoint());
}

TEST(Publisher, AnAddressInUseIsNamed) {
  const Publisher publisher = open_publisher();
  const auto second = Publisher::open({.run = "run-2", .endpoint = publisher.endpoint()});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(second.error().message, HasSubstr(publisher.endpoint()));
  EXPECT_THAT(second.error().message, HasSubstr("in use"));
}

TEST(Publisher, AddressesThatAreNoneOrReachableFromOutsideAreRefused) {
  const auto nonsense = Publisher::open({.run = "r", .endpoint = "127.0.0.1"});
  ASSERT_FALSE(nonsense);
  EXPECT_EQ(nonsense.error().code, ErrorCode::kInvalidArgument);
  for (const char* endpoint : {"tcp://0.0.0.0:*", "tcp://*:*", "tcp://eth0:5555"}) {
    const auto open = Publisher::open({.run = "r", .endpoint = endpoint});
    ASSERT_FALSE(open) << endpoint;
    EXPECT_THAT(open.error().message, HasSubstr("other hosts"));
  }
  EXPECT_TRUE(Publisher::open({.run = "r", .endpoint = "tcp://0.0.0.0:*", .insecure = true}));
}

TEST(Publisher, AStoppedSubscriberNeitherBlocksNorGrowsMemoryAndItsLossIsExact) {
  constexpr std::uint64_t kMessages = 100000;
  Publisher publisher = open_publisher();
  auto subscriber = Subscriber::open(publisher.endpoint(), 100);
  connect(publisher, *subscriber);
  std::uint64_t received = 0;
  while (subscriber->receive(milliseconds(0))) {
  }
  const std::size_t before = resident_bytes();
  for (std::uint64_t i = 0; i < kMessages; ++i) publisher.publish(metrics("learner-0", 1.0));
  EXPECT_LT(resident_bytes(), before + (std::size_t{64} << 20));
  EXPECT_GE(publisher.counts().congested, 1u);
  EXPECT_EQ(publisher.counts().unsent, 0u);

  // Awake again: what was queued, then new messages until one of them is through.
  std::uint64_t published = kMessages, last = 0;
  while (last <= kMessages) {
    auto got = subscriber->receive(milliseconds(20));
    if (!got) {
      publisher.publish(metrics("learner-0", 2.0));
      ++published;
      continue;
    }
    ASSERT_TRUE(got->message);
    if (got->message->kind() != Kind::kMetrics) continue;
    ++received;
    last = got->message->sequence;
  }
  EXPECT_GT(subscriber->lost(), 0u);
  EXPECT_EQ(received + subscriber->lost(), last);
  EXPECT_GE(published, last);

  ASSERT_TRUE(ask(publisher, *subscriber));
  EXPECT_EQ(publisher.counts().reported_lost, subscriber->lost());
}

TEST(Publisher, ALateJoinerGetsTheStateAndCountsFromThere) {
  Publisher publisher = open_publisher();
  publisher.publish(metrics("actor-0", 1));
  publisher.publish(metrics("actor-0", 2));
  publisher.publish(metrics("actor-1", 3));
  publisher.publish(event("one"));
  Message evaluation;
  evaluation.node = "evaluator";
  evaluation.actor_steps = 1000;
  evaluation.payload = Evaluation{.returns = {5, 7}, .lengths = {10, 10}};
  publisher.publish(evaluation);
  Message status;
  status.node = "run";
  status.payload = RunStatus{.state = "running"};
  publisher.publish(status);

  auto subscriber = Subscriber::open(publisher.endpoint());
  const auto snapshot = ask(publisher, *subscriber);
  ASSERT_TRUE(snapshot) << snapshot.error().message;
  EXPECT_EQ(snapshot->run, "run-1");
  EXPECT_EQ(snapshot->session, publisher.session());
  EXPECT_EQ(snapshot->sequences, (std::array<std::uint64_t, kKinds>{3, 1, 0, 1, 1}));
  ASSERT_EQ(snapshot->metrics.size(), 2u);
  EXPECT_EQ(std::get<Metrics>(snapshot->metrics[0].payload).at("value"), 2);
  ASSERT_EQ(snapshot->events.size(), 1u);
  ASSERT_EQ(snapshot->evaluations.size(), 1u);
  EXPECT_EQ(snapshot->evaluations[0].actor_steps, 1000);
  ASSERT_TRUE(snapshot->status);
  EXPECT_EQ(std::get<RunStatus>(snapshot->status->payload).state, "running");
  EXPECT_EQ(publisher.counts().snapshots, 1u);

  // What it missed after the snapshot, while its connection came up, it knows exactly.
  std::uint64_t received = 0, last = 0;
  while (received == 0) {
    publisher.publish(event("more"));
    while (auto got = subscriber->receive(milliseconds(10))) {
      ++received;
      last = got->message->sequence;
    }
  }
  EXPECT_EQ(received + subscriber->lost(), last - 1);
}

TEST(Publisher, HistoryIsBoundedRememberedAndForgotten) {
  auto publisher = Publisher::open({.run = "r", .events = 3, .linger = milliseconds(0)});
  ASSERT_TRUE(publisher);
  publisher->remember(event("from an earlier session"));
  for (int i = 0; i < 5; ++i) publisher->publish(event(std::to_string(i)));
  publisher->publish(metrics("actor-0", 1));
  publisher->publish(metrics("actor-1", 1));
  publisher->forget("actor-0");
  auto subscriber = Subscriber::open(publisher->endpoint());
  const auto snapshot = ask(*publisher, *subscriber);
  ASSERT_TRUE(snapshot);
  ASSERT_EQ(snapshot->events.size(), 3u);
  EXPECT_EQ(std::get<Event>(snapshot->events[0].payload).text, "2");
  EXPECT_EQ(snapshot->sequences[static_cast<std::size_t>(Kind::kEvents)], 5u);
  ASSERT_EQ(snapshot->metrics.size(), 1u);
  EXPECT_EQ(snapshot->metrics[0].node, "actor-1");
}

TEST(Publisher, MalformedSnapshotRequestsAreCountedAndHarmless) {
  Publisher publisher = open_publisher();
  zmq::context_t context;
  zmq::socket_t stranger(context, zmq::socket_type::dealer);
  stranger.set(zmq::sockopt::linger, 0);
  stranger.connect(publisher.snapshot_endpoint());
  for (const char* text : {"", "{", "[1]", "{\"request\": 5}", "{\"request\": \"everything\"}"}) {
    stranger.send(zmq::str_buffer(""), zmq::send_flags::sndmore);
    stranger.send(zmq::buffer(std::string(text)), zmq::send_flags::none);
  }
  stranger.send(zmq::str_buffer("one frame only"), zmq::send_flags::none);
  for (int i = 0; i < 10; ++i) {
    stranger.send(zmq::str_buffer("too many"),
                  i < 9 ? zmq::send_flags::sndmore : zmq::send_flags::none);
  }
  while (publisher.counts().bad_requests < 7) publisher.serve_snapshots();
  auto subscriber = Subscriber::open(publisher.endpoint());
  EXPECT_TRUE(ask(publisher, *subscriber));
  EXPECT_EQ(publisher.counts().bad_requests, 7u);
}

TEST(Publisher, TwoHundredComingsAndGoingsLeakNothing) {
  Publisher publisher = open_publisher();
  const auto cycle = [&publisher] {
    auto subscriber = Subscriber::open(publisher.endpoint());
    ASSERT_TRUE(ask(publisher, *subscriber));
    connect(publisher, *subscriber);
  };
  // The publisher learns of a departure from its I/O thread; sending makes it look.
  const auto settle = [&publisher](std::size_t files) {
    while (open_files() > files) {
      publisher.publish(event("tick"));
      publisher.serve_snapshots();
    }
  };
  const std::size_t files = open_files();
  for (int i = 0; i < 20; ++i) cycle();
  settle(files);
  const std::size_t memory = resident_bytes();
  for (int i = 0; i < 200; ++i) cycle();
  settle(files);
  EXPECT_EQ(open_files(), files);
  EXPECT_LT(resident_bytes(), memory + (std::size_t{8} << 20));
}

}  // namespace
}  // namespace troupe::actors::telemetry
