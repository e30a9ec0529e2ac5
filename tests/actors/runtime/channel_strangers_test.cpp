// Strangers on a channel's tcp port: junk, malformed, oversized and unnamed messages.
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
