// The relay in front of an actor system's port, and CAF of a node that joins through a dialer.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <caf/scoped_actor.hpp>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "actors/runtime/relay_loop.hpp"
#include "actors/runtime/system.hpp"
#include "actors/runtime/tls_dialer.hpp"
#include "actors/runtime/tls_relay.hpp"
#include "tests/actors/runtime/certificate_fixture.hpp"
#include "tests/actors/runtime/channel_support.hpp"

namespace troupe::actors {

inline const auto no_types = [](caf::actor_system_config&) {};

inline caf::behavior echo(caf::event_based_actor*) {
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

}  // namespace troupe::actors
