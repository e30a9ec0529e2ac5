// The relay in front of CAF, and the dialer behind which CAF joins: two actor systems talk through
// both, whatever strangers do meanwhile, and every reason to be refused is told by name.
#include "actors/runtime/tls_relay.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <caf/scoped_actor.hpp>
#include <fstream>
#include <future>

#include "actors/runtime/relay_loop.hpp"
#include "actors/runtime/system.hpp"
#include "actors/runtime/tls_dialer.hpp"
#include "tests/actors/runtime/certificate_fixture.hpp"
#include "tests/actors/runtime/channel_support.hpp"

namespace troupe::actors {
namespace {

using testing::HasSubstr;

const auto no_types = [](caf::actor_system_config&) {};

caf::behavior echo(caf::event_based_actor*) {
  return {[](const std::string& text) { return text + " back"; },
          [](const caf::strong_actor_ptr& peer, std::int32_t) { return static_cast<bool>(peer); }};
}

class TlsRelayTest : public CertificateTest {
 protected:
  TlsRelayTest() : server_({}, no_types), actor_(server_.get().spawn(echo)) {
    backend_ = *publish_on_loopback(server_.get(), actor_);
    open_relay({});
  }
  ~TlsRelayTest() override { caf::anon_send_exit(actor_, caf::exit_reason::user_shutdown); }

  void open_relay(TlsRelayOptions options) {
    relay_.reset();
    options.host = "127.0.0.1";
    options.backend = backend_;
    options.credentials = coordinator_;
    options.roles = {{kControlRole, nullptr}, {kWorkerRole, &worker_types_}};
    options.warn = [this](const std::string& line) {
      const std::lock_guard lock(mutex_);
      lines_.push_back(line);
    };
    auto opened = TlsRelay::open(std::move(options));
    if (!opened) throw std::runtime_error(opened.error().message);
    relay_ = std::move(*opened);
  }

  TlsDialerOptions to_relay(std::shared_ptr<const TlsCredentials> credentials) const {
    return {.host = "127.0.0.1", .port = relay_->port(), .credentials = std::move(credentials)};
  }

  std::string refusal(std::shared_ptr<const TlsCredentials> credentials) const {
    const auto probed = probe_relay(to_relay(std::move(credentials)));
    return probed ? "nothing" : probed.error().message;
  }

  std::string lines() {
    const std::lock_guard lock(mutex_);
    std::string text;
    for (const std::string& line : lines_) text += line + "\n";
    return text;
  }

  // A raw connection to the relay that said `bytes`.
  int stranger(const std::string& bytes) const {
    const int raw = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(relay_->port());
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(raw, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    (void)!::send(raw, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    return raw;
  }

  const std::shared_ptr<const TlsCredentials> coordinator_ =
      credentials_of({kCoordinatorRole, kWorkerRole});
  const MessageTypes worker_types_{"@atom", "@str", "@strong_actor_ptr"};
  System server_;
  caf::actor actor_;
  std::uint16_t backend_ = 0;
  std::mutex mutex_;
  std::vector<std::string> lines_;
  std::unique_ptr<TlsRelay> relay_;
};

// CAF of a node that joined through a dialer.
class Joined {
 public:
  explicit Joined(TlsDialerOptions options)
      : dialer_(std::move(*TlsDialer::open(std::move(options)))), system_({}, no_types) {
    auto promise = std::make_shared<std::promise<Result<caf::actor>>>();
    system_.get().spawn([promise, port = dialer_->port()](caf::event_based_actor* self) {
      connect_to_node(
          self, "127.0.0.1", port, 10s,
          [promise](const caf::actor& peer) { promise->set_value(peer); },
          [promise](const Error& error) { promise->set_value(tl::unexpected(error)); });
    });
    peer_ = promise->get_future().get();
  }

  template <class... Ts>
  std::string ask(Ts... words) {
    return ask_within(20s, std::move(words)...);
  }
  template <class... Ts>
  std::string ask_within(std::chrono::milliseconds limit, Ts... words) {
    if (!peer_) return peer_.error().message;
    caf::scoped_actor self(system_.get());
    std::string answer;
    self->request(*peer_, limit, std::move(words)...)
        .receive([&](const std::string& text) { answer = text; },
                 [&](const caf::error& error) { answer = "error: " + to_string(error); });
    return answer;
  }
  // CAF answers nothing to what is sent over a connection that is gone.
  bool is_lost() {
    return eventually([&] { return ask_within(500ms, std::string("ping")) != "ping back"; });
  }
  template <class... Ts>
  void tell(Ts... words) {
    caf::scoped_actor self(system_.get());
    self->send(*peer_, std::move(words)...);
  }
  void end_peer() {
    caf::scoped_actor self(system_.get());
    self->send_exit(*peer_, caf::exit_reason::kill);
  }
  TlsDialer& dialer() { return *dialer_; }

 private:
  std::unique_ptr<TlsDialer> dialer_;
  System system_;
  Result<caf::actor> peer_;
};

TEST_F(TlsRelayTest, TwoActorSystemsTalkThroughIt) {
  Joined node(to_relay(credentials_of({kWorkerRole})));
  EXPECT_EQ(node.ask(std::string("there and")), "there and back");
  const std::string large(8 << 20, 'x');
  EXPECT_EQ(node.ask(large), large + " back");
  EXPECT_EQ(relay_->counts().open, 1u);
  EXPECT_EQ(node.dialer().last_error(), "");
  EXPECT_EQ(lines(), "");
}

TEST_F(TlsRelayTest, AProbeIsAFinishedHandshakeAndNothingMore) {
  EXPECT_EQ(refusal(credentials_of({kWorkerRole})), "nothing");
  EXPECT_TRUE(eventually([&] { return relay_->counts().open == 0; }));
  EXPECT_EQ(relay_->counts().admitted, 1u);
}

TEST_F(TlsRelayTest, AnotherClustersCertificateIsRefusedOnBothSidesByName) {
  must(init_authority(path("other"), "elsewhere", std::chrono::hours(24)));
  const auto foreign = credentials(bundle({.name = "thief", .addresses = {}}, "other"));
  EXPECT_THAT(refusal(foreign), HasSubstr("not of this cluster (signed by the authority 'test'"));
  EXPECT_TRUE(eventually([&] { return lines().find("authority") != std::string::npos; }));
  EXPECT_EQ(relay_->counts().admitted, 0u);
}

// An authority that trusts the relay's, but whose certificates the relay does not know.
TEST_F(TlsRelayTest, ACertificateThatTheRelayDoesNotKnowIsRefusedByName) {
  must(init_authority(path("other"), "elsewhere", std::chrono::hours(24)));
  const auto made = bundle({.name = "thief", .addresses = {}}, "other");
  const auto both = credentials(made);
  const auto relay_authority = certificate_of_pem([&] {
    std::ifstream stream(path("cluster") / kAuthorityFile);
    return std::string(std::istreambuf_iterator<char>(stream), {});
  }());
  X509_STORE_add_cert(SSL_CTX_get_cert_store(both->context()), relay_authority.get());
  EXPECT_THAT(refusal(both), HasSubstr("does not know the authority that signed"));
  EXPECT_TRUE(eventually([&] { return lines().find("not of this cluster") != std::string::npos; }));
}

TEST_F(TlsRelayTest, ACertificateThatExpiresMeanwhileIsRefusedOnBothSides) {
  const auto brief = credentials(bundle({.name = "brief",
                                         .addresses = {},
                                         .roles = {kWorkerRole},
                                         .begins = std::chrono::seconds(-60),
                                         .lasts = std::chrono::seconds(61)}));
  std::this_thread::sleep_for(2500ms);  // until it is over by the second
  EXPECT_THAT(refusal(brief), HasSubstr("certificate has expired"));
  EXPECT_TRUE(eventually([&] { return lines().find("expired at") != std::string::npos; }));
}

TEST_F(TlsRelayTest, AnotherHostsCertificateIsRefusedByName) {
  TlsDialerOptions options = to_relay(credentials_of({kWorkerRole}));
  relay_.reset();
  const auto elsewhere =
      credentials(bundle({.name = "far", .addresses = {"10.9.9.9"}, .roles = {kCoordinatorRole}}));
  auto relay = TlsRelay::open({.host = "127.0.0.1",
                               .backend = backend_,
                               .credentials = elsewhere,
                               .roles = {{kWorkerRole, nullptr}}});
  options.port = (*relay)->port();
  const auto probed = probe_relay(options);
  ASSERT_FALSE(probed.has_value());
  EXPECT_THAT(probed.error().message,
              HasSubstr("its certificate is for 10.9.9.9, not for 127.0.0.1"));
}

TEST_F(TlsRelayTest, AWorkerCannotPoseAsACoordinator) {
  const auto worker = credentials_of({kWorkerRole});
  const auto opened =
      TlsRelay::open({.host = "127.0.0.1", .backend = backend_, .credentials = worker});
  ASSERT_FALSE(opened.has_value());
  EXPECT_THAT(opened.error().message, HasSubstr("lacks the role coordinator"));
}

TEST_F(TlsRelayTest, ARoleThatMayNotJoinIsToldSo) {
  EXPECT_THAT(refusal(credentials_of({kWatchRole})), HasSubstr("lacks the role control or worker"));
}

TEST_F(TlsRelayTest, AnotherVersionOfTroupeIsRefusedByName) {
  const auto made = bundle({.name = "old", .addresses = {}});
  EXPECT_THAT(refusal(credentials(made, "troupe/0")),
              HasSubstr("runs another version of Troupe than troupe/0"));
  EXPECT_TRUE(eventually([&] { return lines().find("another version") != std::string::npos; }));
}

TEST_F(TlsRelayTest, WhatIsNoRelayIsNamed) {
  TlsDialerOptions options = to_relay(credentials_of({kWorkerRole}));
  options.port = backend_;  // speaks CAF's protocol
  EXPECT_THAT(probe_relay(options).error().message, HasSubstr("does not speak TLS"));
  const std::uint16_t port = relay_->port();
  relay_.reset();
  options.port = port;
  const auto gone = probe_relay(options);
  EXPECT_EQ(gone.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(gone.error().message, HasSubstr("127.0.0.1:" + std::to_string(port)));
}

TEST_F(TlsRelayTest, ARunThatIsNotThereIsToldToTheProbe) {
  backend_ = port_of(*listen_at("127.0.0.1", 0));  // free again at once
  open_relay({});
  const auto probed = probe_relay(to_relay(credentials_of({kWorkerRole})));
  ASSERT_FALSE(probed.has_value());
  EXPECT_EQ(probed.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(probed.error().message, HasSubstr("the run behind the relay does not answer"));
}

TEST_F(TlsRelayTest, AWorkersMessageThatOnlyControlMaySendCostsItsConnection) {
  Joined worker(to_relay(credentials_of({kWorkerRole})));
  ASSERT_EQ(worker.ask(std::string("ping")), "ping back");
  worker.tell(std::uint64_t{7});
  EXPECT_TRUE(worker.is_lost());
  EXPECT_THAT(lines(), HasSubstr("@u64 is not allowed"));
  Joined control(to_relay(credentials_of({kControlRole})));
  control.tell(std::uint64_t{7});  // unexpected, but harmless
  EXPECT_EQ(control.ask(std::string("ping")), "ping back");
}

TEST_F(TlsRelayTest, NobodyEndsAnActorOfTheRun) {
  Joined control(to_relay(credentials_of({kControlRole})));
  ASSERT_EQ(control.ask(std::string("ping")), "ping back");
  control.end_peer();
  EXPECT_TRUE(control.is_lost());
  Joined another(to_relay(credentials_of({kWorkerRole})));
  EXPECT_EQ(another.ask(std::string("still")), "still back");
}

TEST_F(TlsRelayTest, AMessageAboveTheLimitCostsItsConnection) {
  open_relay({.most_payload = 1000});
  Joined node(to_relay(credentials_of({kWorkerRole})));
  ASSERT_EQ(node.ask(std::string(500, 'x')).size(), 505u);
  node.tell(std::string(2000, 'x'));
  EXPECT_TRUE(node.is_lost());
  EXPECT_THAT(lines(), HasSubstr("at most 1000 are allowed"));
}

TEST_F(TlsRelayTest, SilentAndHalfOpenConnectionsEndInTimeAndCostNobodyElseAnything) {
  open_relay({.lobby = {.most = 32, .most_per_address = 16}, .patience = 300ms});
  Joined node(to_relay(credentials_of({kWorkerRole})));
  ASSERT_EQ(node.ask(std::string("a")), "a back");
  std::vector<int> raw;
  const std::string half_hello("\x16\x03\x01\x02\x00\x01", 6);
  for (int i = 0; i < 60; ++i) raw.push_back(stranger(i % 2 == 0 ? "" : half_hello));
  EXPECT_EQ(node.ask(std::string("b")), "b back");
  EXPECT_EQ(refusal(credentials_of({kWorkerRole})), "nothing") << "an honest newcomer gets in";
  EXPECT_LE(relay_->counts().in_handshake, 16u);
  EXPECT_TRUE(eventually([&] { return relay_->counts().in_handshake == 0; }));
  const auto counts = relay_->counts();
  EXPECT_EQ(counts.dropped, 60u);
  EXPECT_GT(counts.dropped_because.at("it did not finish the handshake in time"), 0u);
  for (const int socket : raw) {
    char byte = 0;
    EXPECT_LE(::recv(socket, &byte, 1, 0), 0) << "it was closed";
    ::close(socket);
  }
  EXPECT_EQ(node.ask(std::string("c")), "c back");
}

TEST_F(TlsRelayTest, JunkIsDroppedCountedAndNotedBriefly) {
  for (int i = 0; i < 300; ++i) {
    const int raw =
        stranger(i % 3 == 0 ? "GET / HTTP/1.1\r\n\r\n" : std::string(1 + i % 99, '\xff'));
    ::close(raw);
  }
  EXPECT_TRUE(eventually([&] { return relay_->counts().dropped == 300; }));
  EXPECT_EQ(relay_->counts().open, 0u);
  const std::lock_guard lock(mutex_);
  EXPECT_LE(lines_.size(), 10u);
  EXPECT_THAT(lines_.front(), testing::ContainsRegex("127.0.0.1:[0-9]+: it"));
}

// A peer that never reads must slow the run's actor system, not fill the relay.
TEST_F(TlsRelayTest, BuffersAreBoundedWhenAPeerStopsReading) {
  const Socket listener = std::move(*listen_at("127.0.0.1", 0));
  backend_ = port_of(listener);
  open_relay({});
  auto dialer = std::move(*TlsDialer::open(to_relay(credentials_of({kWorkerRole}))));
  const Socket client = std::move(*start_connect("127.0.0.1", dialer->port()));
  int accepted = -1;
  ASSERT_TRUE(
      eventually([&] { return (accepted = ::accept(listener.get(), nullptr, nullptr)) >= 0; }));
  const std::string block(1 << 16, 'x');
  std::size_t sent = 0;
  // As the run: it writes until nothing has moved for a while.
  auto last = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() - last < 300ms && sent < (std::size_t{256} << 20)) {
    const ssize_t moved = ::send(accepted, block.data(), block.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (moved <= 0) continue;
    sent += static_cast<std::size_t>(moved);
    last = std::chrono::steady_clock::now();
  }
  EXPECT_LT(sent, std::size_t{64} << 20) << "the kernel's buffers and 128 KiB of each relay";
  ::close(accepted);
}

}  // namespace
}  // namespace troupe::actors
