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

namespace troupe::actors {
namespace {

using namespace std::chrono_literals;

constexpr auto kPatience = 20s;

std::shared_ptr<const Bytes> bytes(std::size_t size, std::uint8_t value = 7) {
  return std::make_shared<const Bytes>(size, value);
}

template <class T>
T take(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message);
  return std::move(*result);
}

// Until `attempt` succeeds; a deadline only bounds a failing test.
bool eventually(const std::function<bool()>& attempt) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (std::chrono::steady_clock::now() < deadline) {
    if (attempt()) return true;
    std::this_thread::sleep_for(1ms);
  }
  return false;
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
    ASSERT_EQ(*received.message.payload, Bytes(static_cast<std::size_t>(i), 7));
  }
  EXPECT_EQ(server->dropped(), 0u);
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
  ASSERT_EQ(*received.message.payload, *payload);
  ASSERT_TRUE(server->send("a", {2, received.message.payload}).has_value());
  ASSERT_EQ(*receive(*client).payload, *payload);
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

// ---- strangers on a tcp port ----

class StrangerTest : public testing::Test {
 protected:
  StrangerTest()
      : server_(take(open_channel_server("tcp://127.0.0.1:*", {.max_message_bytes = 100}))) {}

  int port() const {
    const std::string endpoint = server_->endpoint();
    return std::stoi(endpoint.substr(endpoint.rfind(':') + 1));
  }

  // Connects and writes raw bytes; returns the open socket.
  int write_raw(const std::string& data) const {
    const int raw = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port()));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(raw, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::send(raw, data.data(), data.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(data.size()));
    return raw;
  }

  // A well-behaved client still gets through.
  void expect_service() {
    auto client = take(open_channel_client(server_->endpoint(), "honest"));
    ASSERT_TRUE(eventually([&] { return client->send({42, bytes(10)}).has_value(); }));
    for (;;) {
      const auto received = server_->receive(kPatience);
      ASSERT_TRUE(received.has_value());
      ASSERT_EQ(received->peer, "honest") << "no stranger's bytes may come out";
      if (received->message.kind == 42) return;
    }
  }

  std::unique_ptr<ChannelServer> server_;
};

TEST_F(StrangerTest, RawJunkNeverComesOut) {
  std::string junk;
  for (int i = 0; i < 5000; ++i) junk += static_cast<char>(i * 131 + 7);
  std::vector<int> sockets;
  for (const std::string& data : {junk, std::string("GET / HTTP/1.1\r\n\r\n"), std::string(3, '\0'),
                                  std::string("\xff\0\0\0\0\0\0\0\1\x7f", 10),
                                  std::string("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f")})
    sockets.push_back(write_raw(data));
  expect_service();
  for (const int raw : sockets) ::close(raw);
}

// A peer that speaks ZeroMQ but not our framing.
TEST_F(StrangerTest, MalformedAndOversizedMessagesAreDroppedAndCounted) {
  zmq::socket_t dealer(zmq_context(), zmq::socket_type::dealer);
  dealer.set(zmq::sockopt::routing_id, "stranger");
  dealer.set(zmq::sockopt::linger, 0);
  dealer.connect(server_->endpoint());
  const auto send = [&](std::initializer_list<std::size_t> frames) {
    std::size_t index = 0;
    for (const std::size_t size : frames) {
      zmq::message_t frame(size);
      dealer.send(frame,
                  ++index < frames.size() ? zmq::send_flags::sndmore : zmq::send_flags::none);
    }
  };
  send({0});          // no kind
  send({2, 5});       // a kind of two bytes
  send({1, 60, 41});  // 101 bytes in all
  send({1, 60, 40});  // exactly the limit
  const auto received = server_->receive(kPatience);
  ASSERT_TRUE(received.has_value());
  EXPECT_EQ(received->message.payload->size(), 100u);
  EXPECT_EQ(server_->dropped(), 3u);
  expect_service();
}

TEST_F(StrangerTest, AFrameAboveOneMebibyteClosesTheConnectionBeforeItIsAllocated) {
  zmq::socket_t dealer(zmq_context(), zmq::socket_type::dealer);
  dealer.set(zmq::sockopt::routing_id, "stranger");
  dealer.set(zmq::sockopt::linger, 0);
  dealer.connect(server_->endpoint());
  zmq::message_t frame((std::size_t{1} << 20) + 1);
  dealer.send(frame, zmq::send_flags::none);
  expect_service();
}

TEST_F(StrangerTest, APeerWithoutANameIsDropped) {
  zmq::socket_t dealer(zmq_context(), zmq::socket_type::dealer);
  dealer.set(zmq::sockopt::linger, 0);
  dealer.connect(server_->endpoint());
  zmq::message_t kind(1);
  dealer.send(kind, zmq::send_flags::none);
  EXPECT_TRUE(eventually([&] {
    EXPECT_FALSE(server_->receive(1ms).has_value());
    return server_->dropped() == 1;
  }));
}

}  // namespace
}  // namespace troupe::actors
