// The relay in front of CAF, and the dialer behind which CAF joins: two actor systems talk through
// both, whatever strangers do meanwhile, and every reason to be refused is told by name.
#include "actors/runtime/tls_relay.hpp"

#include <sys/wait.h>

#include <fstream>

#include "tests/actors/runtime/tls_relay_fixture.hpp"

namespace troupe::actors {
namespace {

using testing::HasSubstr;

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

// The dialer's port speaks with this host's certificate, so it is not for everyone here.
TEST_F(TlsRelayTest, AnotherUserOfThisHostIsRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  auto options = to_relay(credentials_of({kWorkerRole}));
  std::mutex mutex;
  std::string said;
  options.warn = [&](const std::string& line) {
    const std::lock_guard lock(mutex);
    said += line;
  };
  const auto dialer = std::move(*TlsDialer::open(std::move(options)));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(dialer->port());
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const pid_t child = ::fork();
  if (child == 0) {  // only system calls: other threads were not copied
    char byte = 0;
    const bool other = ::setresuid(65534, 65534, 65534) == 0;
    const int raw = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const bool connected =
        other && ::connect(raw, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
    ::_exit(connected && ::recv(raw, &byte, 1, 0) <= 0 ? 0 : 1);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  const std::lock_guard lock(mutex);
  EXPECT_THAT(said, HasSubstr("user 65534"));
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
