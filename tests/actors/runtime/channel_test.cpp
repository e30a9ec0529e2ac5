// One contract for all channels: what holds in one process must hold over ipc and tcp.
#include "actors/runtime/channel.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <string>
#include <thread>

#include "actors/runtime/zmq_context.hpp"
#include "tests/actors/runtime/channel_support.hpp"

namespace troupe::actors {
namespace {

Bytes copy_of(const ChannelMessage& message) {
  return {message.payload->begin(), message.payload->end()};
}

class ChannelTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    const std::string test = testing::UnitTest::GetInstance()->current_test_info()->name();
    directory_ = std::filesystem::temp_directory_path() / ("troupe-" + std::to_string(::getpid()));
    std::filesystem::create_directories(directory_);
    if (GetParam() == "inproc") endpoint_ = "inproc://" + test;
    if (GetParam() == "ipc") endpoint_ = "ipc://" + (directory_ / "channel").string();
    if (GetParam() == "tcp") endpoint_ = "tcp://127.0.0.1:*";
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  std::unique_ptr<ChannelServer> serve(ChannelLimits limits = {}) {
    auto server = take(open_channel_server(endpoint_, limits));
    endpoint_ = server->endpoint();
    return server;
  }
  std::unique_ptr<ChannelClient> connect(const std::string& name, ChannelLimits limits = {}) {
    return take(open_channel_client(endpoint_, name, limits));
  }

  // Sends until the connection stands and the queue has room.
  static void send_all(ChannelClient& client, ChannelMessage message) {
    ASSERT_TRUE(eventually([&] { return client.send(message).has_value(); }));
  }
  static ChannelServer::Received receive(ChannelServer& server) {
    auto received = server.receive(kPatience);
    EXPECT_TRUE(received.has_value());
    return received.value_or(ChannelServer::Received{});
  }
  static ChannelMessage receive(ChannelClient& client) {
    auto received = client.receive(kPatience);
    EXPECT_TRUE(received.has_value());
    return received.value_or(ChannelMessage{});
  }

  std::filesystem::path directory_;
  std::string endpoint_;
};

TEST_P(ChannelTest, MessagesArriveInOrderAndUnchanged) {
  auto server = serve();
  auto client = connect("worker 1.1");
  for (int i = 0; i < 500; ++i)
    send_all(*client, {static_cast<std::uint8_t>(i % 256), bytes(static_cast<std::size_t>(i))});
  for (int i = 0; i < 500; ++i) {
    const auto received = receive(*server);
    ASSERT_EQ(received.peer, "worker 1.1");
    ASSERT_EQ(received.message.kind, i % 256);
    ASSERT_EQ(copy_of(received.message), Bytes(static_cast<std::size_t>(i), 7));
  }
  EXPECT_EQ(server->dropped(), 0u);
}

TEST_P(ChannelTest, AShortWaitForNothingIsAWait) {
  auto server = serve();
  auto client = connect("worker 1.1");
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < 40; ++i) {
    EXPECT_FALSE(server->receive(std::chrono::milliseconds{1}));
    EXPECT_FALSE(client->receive(std::chrono::milliseconds{1}));
  }
  // Half of it: the system's own clock may be coarse.
  EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds{40});
}

TEST_P(ChannelTest, EachPeerGetsOnlyItsOwnAnswers) {
  auto server = serve();
  auto first = connect("a"), second = connect("b");
  send_all(*first, {1, nullptr});
  send_all(*second, {2, nullptr});
  for (int i = 0; i < 2; ++i) {
    const auto received = receive(*server);
    ASSERT_TRUE(received.message.payload) << "an absent payload arrives as an empty one";
    ASSERT_TRUE(server->send(received.peer, {received.message.kind, bytes(3)}).has_value());
  }
  EXPECT_EQ(receive(*first).kind, 1);
  EXPECT_EQ(receive(*second).kind, 2);
  EXPECT_FALSE(first->receive(0ms).has_value());
}

TEST_P(ChannelTest, LargeMessagesArriveWholeBothWays) {
  auto server = serve();
  auto client = connect("a");
  Bytes large(std::size_t{64} << 20);
  for (std::size_t i = 0; i < large.size(); ++i) large[i] = static_cast<std::uint8_t>(i * 31 >> 7);
  const auto payload = std::make_shared<const Bytes>(std::move(large));
  send_all(*client, {1, payload});
  const auto received = receive(*server);
  ASSERT_EQ(copy_of(received.message), *payload);
  ASSERT_TRUE(server->send("a", {2, received.message.payload}).has_value());
  const ChannelMessage answer = receive(*client);
  ASSERT_EQ(copy_of(answer), *payload);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(answer.payload->data()) % alignof(double), 0U);
}

TEST_P(ChannelTest, ThePayloadIsReleasedOnceItIsReceived) {
  auto server = serve();
  auto client = connect("a");
  auto payload = bytes(3 << 20);
  const std::weak_ptr<const Bytes> observer = payload;
  send_all(*client, {1, std::move(payload)});
  receive(*server);
  EXPECT_TRUE(eventually([&] { return observer.expired(); }));
}

TEST_P(ChannelTest, TooLargeMessagesAreRefusedBySender) {
  auto server = serve({.max_message_bytes = 1000});
  auto client = connect("a", {.max_message_bytes = 1000});
  const auto refused = client->send({1, bytes(1001)});
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
  send_all(*client, {1, bytes(1000)});
  EXPECT_EQ(receive(*server).message.payload->size(), 1000u);
  EXPECT_FALSE(server->send("a", {1, bytes(1001)}).has_value());
}

TEST_P(ChannelTest, APeerThatNeverCameOrWentIsUnavailable) {
  auto server = serve();
  EXPECT_EQ(server->send("nobody", {1, nullptr}).error().code, ErrorCode::kUnavailable);
  auto client = connect("a");
  send_all(*client, {1, nullptr});
  receive(*server);
  ASSERT_TRUE(server->send("a", {1, nullptr}).has_value());
  client.reset();
  EXPECT_TRUE(eventually([&] {
    const auto sent = server->send("a", {1, nullptr});
    return !sent && sent.error().code == ErrorCode::kUnavailable;
  }));
}

TEST_P(ChannelTest, AClientMayComeBeforeItsServer) {
  if (GetParam() == "tcp") serve();  // only to learn a port that is free
  auto client = connect("early");
  EXPECT_EQ(client->send({1, nullptr}).error().code, ErrorCode::kUnavailable);
  auto server = serve();
  send_all(*client, {2, nullptr});
  EXPECT_EQ(receive(*server).message.kind, 2);
}

TEST_P(ChannelTest, AClientFindsARestartedServer) {
  auto server = serve();
  auto client = connect("a");
  send_all(*client, {1, nullptr});
  receive(*server);
  server.reset();
  server = serve();
  // What was sent towards the old server may be lost; the owner resends.
  std::optional<ChannelServer::Received> received;
  EXPECT_TRUE(eventually([&] {
    (void)client->send({2, nullptr});
    received = server->receive(10ms);
    return received.has_value();
  }));
  ASSERT_TRUE(received.has_value());
  EXPECT_EQ(received->message.kind, 2);
  ASSERT_TRUE(server->send("a", {3, nullptr}).has_value());
  EXPECT_EQ(receive(*client).kind, 3);
}

TEST_P(ChannelTest, ANewClientTakesOverTheNameOfADeadOne) {
  auto server = serve();
  auto old_client = connect("a");
  send_all(*old_client, {1, nullptr});
  receive(*server);
  auto new_client = connect("a");
  send_all(*new_client, {2, nullptr});
  EXPECT_EQ(receive(*server).message.kind, 2);
  ASSERT_TRUE(server->send("a", {3, nullptr}).has_value());
  EXPECT_EQ(receive(*new_client).kind, 3);
}

TEST_P(ChannelTest, QueuesAreBoundedWhenTheServerStopsReceiving) {
  auto server = serve({.high_water_mark = 4});
  auto client = connect("a", {.high_water_mark = 4});
  send_all(*client, {0, nullptr});
  receive(*server);
  // Payloads of 1 MiB: the kernel's socket buffers hold a few more than the two queues.
  const auto payload = bytes(1 << 20);
  int accepted = 0;
  const auto deadline = std::chrono::steady_clock::now() + 300ms;
  while (std::chrono::steady_clock::now() < deadline && accepted < 200) {
    const auto sent = client->send({static_cast<std::uint8_t>(accepted + 1), payload});
    if (sent)
      ++accepted;
    else
      EXPECT_EQ(sent.error().code, ErrorCode::kUnavailable);
  }
  EXPECT_GE(accepted, 1);
  EXPECT_LT(accepted, 40);
  for (int i = 0; i < accepted; ++i) ASSERT_EQ(receive(*server).message.kind, i + 1);
  EXPECT_FALSE(server->receive(0ms).has_value());
  send_all(*client, {99, payload});
  EXPECT_EQ(receive(*server).message.kind, 99);
}

TEST_P(ChannelTest, QueuesAreBoundedWhenAClientStopsReceiving) {
  auto server = serve({.high_water_mark = 4});
  auto slow = connect("slow", {.high_water_mark = 4});
  auto quick = connect("quick", {.high_water_mark = 4});
  for (ChannelClient* client : {slow.get(), quick.get()}) {
    send_all(*client, {0, nullptr});
    receive(*server);
  }
  const auto payload = bytes(1 << 20);
  int accepted = 0;
  while (accepted < 200 && server->send("slow", {1, payload})) ++accepted;
  EXPECT_LT(accepted, 200);
  ASSERT_TRUE(server->send("quick", {2, payload}).has_value())
      << "one slow peer must not hold up another";
  EXPECT_EQ(receive(*quick).kind, 2);
}

TEST_P(ChannelTest, TwoThreadsExchangeThousandsOfMessages) {
  auto server = serve();
  constexpr int kMessages = 5000;
  std::thread other([endpoint = endpoint_] {
    auto client = take(open_channel_client(endpoint, "a"));
    for (int i = 0; i < kMessages; ++i) {
      send_all(*client, {1, bytes(64)});
      if (i % 100 == 99) receive(*client);
    }
  });
  for (int i = 0; i < kMessages; ++i) {
    const auto received = server->receive(kPatience);
    if (!received) break;
    if (i % 100 == 99) {
      EXPECT_TRUE(server->send(received->peer, {2, nullptr}).has_value());
    }
  }
  other.join();
}

TEST_P(ChannelTest, AnAddressInUseIsNamedWithWhatToDo) {
  auto server = serve();
  const auto second = open_channel_server(endpoint_);
  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(second.error().code, ErrorCode::kUnavailable);
  EXPECT_NE(second.error().message.find(endpoint_), std::string::npos);
  EXPECT_NE(second.error().message.find("in use"), std::string::npos);
  auto client = connect("a");
  send_all(*client, {5, nullptr});
  EXPECT_EQ(receive(*server).message.kind, 5) << "the first server goes on";
}

INSTANTIATE_TEST_SUITE_P(Every, ChannelTest, testing::Values("inproc", "ipc", "tcp"),
                         [](const auto& suite) { return suite.param; });

TEST(Channel, EndpointsAndNamesThatCannotBeAreRefused) {
  for (const char* endpoint :
       {"", "tcp", "udp://127.0.0.1:1", "tcp://", "tcp://127.0.0.1:x", "tcp://203.0.113.7:5555"}) {
    const auto server = open_channel_server(endpoint);
    ASSERT_FALSE(server.has_value()) << endpoint;
    EXPECT_EQ(server.error().code, ErrorCode::kInvalidArgument) << server.error().message;
    EXPECT_NE(server.error().message.find(endpoint), std::string::npos);
  }
  for (const std::string& name : {std::string(), std::string(256, 'x'), std::string("\0a", 2)})
    EXPECT_FALSE(open_channel_client("inproc://names", name).has_value());
}

// What a server killed by SIGKILL leaves behind: a bound file that nobody listens on.
TEST(Channel, AnAbandonedSocketFileIsReplaced) {
  const std::string path = testing::TempDir() + "troupe-abandoned-" + std::to_string(::getpid());
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  const int left = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ASSERT_EQ(::bind(left, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ::close(left);
  ASSERT_TRUE(std::filesystem::exists(path));
  auto server = take(open_channel_server("ipc://" + path));
  auto client = take(open_channel_client("ipc://" + path, "a"));
  ASSERT_TRUE(eventually([&] { return client->send({9, nullptr}).has_value(); }));
  EXPECT_TRUE(server->receive(kPatience).has_value());
  server.reset();
  EXPECT_FALSE(std::filesystem::exists(path)) << "an orderly end leaves no file";
}

}  // namespace
}  // namespace troupe::actors
