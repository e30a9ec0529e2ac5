// Two actor systems that meet on loopback, and addresses that are not what they should be.
#include "actors/runtime/system.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <caf/scoped_actor.hpp>
#include <future>
#include <vector>

#include "actors/runtime/log.hpp"

namespace troupe::actors {
namespace {

using namespace std::chrono_literals;

constexpr auto kPatience = 20s;
const auto no_types = [](caf::actor_system_config&) {};

caf::behavior echo(caf::event_based_actor*) {
  return {[](const std::string& text) { return text + " back"; }};
}

using Connected = Result<caf::actor>;

// Connects from an actor of `system`.
std::future<Connected> connect(System& system, const std::string& host, std::uint16_t port,
                               std::chrono::milliseconds timeout = 10s) {
  auto promise = std::make_shared<std::promise<Connected>>();
  system.get().spawn([=](caf::event_based_actor* self) {
    connect_to_node(
        self, host, port, timeout, [promise](const caf::actor& peer) { promise->set_value(peer); },
        [promise](const Error& error) { promise->set_value(tl::unexpected(error)); });
  });
  return promise->get_future();
}

Connected result_of(std::future<Connected> future) {
  if (future.wait_for(kPatience) != std::future_status::ready)
    return fail(ErrorCode::kInternal, "the test ran out of patience");
  return future.get();
}

// A bound port of 127.0.0.1 for the life of the object.
class Port {
 public:
  explicit Port(int backlog) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    address_.sin_family = AF_INET;
    address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::bind(socket_, reinterpret_cast<sockaddr*>(&address_), sizeof address_), 0);
    socklen_t size = sizeof address_;
    ::getsockname(socket_, reinterpret_cast<sockaddr*>(&address_), &size);
    if (backlog >= 0) {
      EXPECT_EQ(::listen(socket_, backlog), 0);
    }
  }
  ~Port() {
    for (const int filler : fillers_) ::close(filler);
    ::close(socket_);
  }
  std::uint16_t number() const { return ntohs(address_.sin_port); }

  // Fills the backlog, so that the kernel drops every further connection request without a word.
  void swallow_requests() {
    for (int i = 0; i < 8; ++i) {
      fillers_.push_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
      ::connect(fillers_.back(), reinterpret_cast<sockaddr*>(&address_), sizeof address_);
    }
  }

 private:
  int socket_;
  sockaddr_in address_{};
  std::vector<int> fillers_;
};

// An actor that ends before the system it lives in waits for it.
class Served {
 public:
  explicit Served(System& system) : actor_(system.get().spawn(echo)) {}
  ~Served() { caf::anon_send_exit(actor_, caf::exit_reason::user_shutdown); }
  Result<std::uint16_t> publish(System& system, std::uint16_t port = 0) const {
    return publish_on_loopback(system.get(), actor_, port);
  }

 private:
  caf::actor actor_;
};

TEST(System, TheRecommendedSettingsAreInForce) {
  System system({.run = "a", .threads = 3}, no_types);
  const auto& config = system.get().config();
  EXPECT_EQ(caf::get_or(config, "scheduler.max-threads", std::size_t{0}), 3u);
  EXPECT_EQ(caf::get_or(config, "scheduler.max-throughput", std::size_t{0}), 16u);
  EXPECT_EQ(system.get().scheduler().num_workers(), 3u);
  EXPECT_EQ(caf::get_or(config, "middleman.heartbeat-interval", caf::timespan{0}),
            caf::timespan(5s));
  EXPECT_EQ(caf::get_or(config, "middleman.connection-timeout", caf::timespan{0}),
            caf::timespan(15s));
  EXPECT_EQ(application_identifier("a"), "troupe/1/a");
}

TEST(System, NodesOfOneRunTalk) {
  System server({}, no_types), client({}, no_types);
  const Served served(server);
  const Connected peer = result_of(connect(client, "localhost", *served.publish(server)));
  ASSERT_TRUE(peer.has_value()) << peer.error().message;
  caf::scoped_actor self(client.get());
  std::string answer;
  self->request(*peer, kPatience, std::string("there and"))
      .receive([&](const std::string& text) { answer = text; },
               [](const caf::error& error) { FAIL() << to_string(error); });
  EXPECT_EQ(answer, "there and back");
}

TEST(System, AnotherRunIsRefusedByName) {
  System server({.run = "one"}, no_types), client({.run = "two"}, no_types);
  const Served served(server);
  const Connected peer = result_of(connect(client, "127.0.0.1", *served.publish(server)));
  ASSERT_FALSE(peer.has_value());
  EXPECT_NE(peer.error().message.find("another run"), std::string::npos) << peer.error().message;
}

TEST(System, APortThatNobodyServesIsNamed) {
  System client({}, no_types);
  const Port bound(-1);
  const Connected peer = result_of(connect(client, "127.0.0.1", bound.number()));
  ASSERT_FALSE(peer.has_value());
  EXPECT_EQ(peer.error().code, ErrorCode::kUnavailable);
  EXPECT_NE(peer.error().message.find("127.0.0.1:" + std::to_string(bound.number())),
            std::string::npos);
}

TEST(System, AHostThatDoesNotResolveIsNamed) {
  System client({}, no_types);
  const Connected peer = result_of(connect(client, "no such host", 1));
  ASSERT_FALSE(peer.has_value());
  EXPECT_NE(peer.error().message.find("cannot resolve no such host"), std::string::npos);
}

TEST(System, AListenerThatSaysNothingTimesOut) {
  System client({}, no_types);
  const Port silent(8);
  const Connected peer = result_of(connect(client, "127.0.0.1", silent.number(), 200ms));
  ASSERT_FALSE(peer.has_value());
  EXPECT_EQ(peer.error().code, ErrorCode::kTimeout);
}

TEST(System, AnAddressThatSwallowsRequestsHoldsUpNobody) {
  System server({}, no_types), client({.threads = 1}, no_types);
  Port hole(0);
  hole.swallow_requests();
  auto swallowed = connect(client, "127.0.0.1", hole.number());
  const Served served(server);
  const Connected peer = result_of(connect(client, "127.0.0.1", *served.publish(server)));
  EXPECT_TRUE(peer.has_value());
  EXPECT_EQ(swallowed.wait_for(0s), std::future_status::timeout)
      << "the hole is still being probed";
  EXPECT_EQ(result_of(std::move(swallowed)).error().code, ErrorCode::kUnavailable);
}

TEST(System, APortInUseIsNamedWithWhatToDo) {
  System system({}, no_types);
  const Port taken(1);
  const Served served(system);
  const auto port = served.publish(system, taken.number());
  ASSERT_FALSE(port.has_value());
  EXPECT_EQ(port.error().code, ErrorCode::kUnavailable) << port.error().message;
  EXPECT_NE(port.error().message.find(std::to_string(taken.number())), std::string::npos);
}

TEST(System, AnExceptionEndsOneActorAndAnswersItsRequest) {
  System system({}, no_types);
  const caf::actor thrower = system.get().spawn([](caf::event_based_actor* actor) -> caf::behavior {
    catch_exceptions(actor, "thrower");
    return {[](int) -> int { throw std::runtime_error("bad luck"); }};
  });
  caf::scoped_actor self(system.get());
  std::string reason;
  self->request(thrower, kPatience, 1)
      .receive([](int) { FAIL() << "it threw"; },
               [&](const caf::error& error) { reason = to_string(error); });
  EXPECT_NE(reason.find("bad luck"), std::string::npos) << reason;
}

}  // namespace
}  // namespace troupe::actors
