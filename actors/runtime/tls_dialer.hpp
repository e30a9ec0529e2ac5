// The other end of a TlsRelay: a loopback port of this host that CAF of a joining node connects to.
// Every connection there becomes one to the relay, with this host's certificate. Only processes of
// the same user are served. A thread of its own; no CAF here.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "actors/runtime/tls_session.hpp"

namespace troupe::actors {

struct TlsDialerOptions {
  std::string host{};  // of the relay: a name or a numeric address that its certificate holds
  std::uint16_t port = 0;
  std::shared_ptr<const TlsCredentials> credentials{};
  std::chrono::milliseconds patience{3000};              // with connect and handshake
  std::uint32_t most_payload = std::uint32_t{16} << 20;  // bytes of one message from the run
  // Lines worth a warning, on the dialer's thread.
  std::function<void(const std::string& line)> warn = [](const std::string&) {};
};

class TlsDialer {
 public:
  static Result<std::unique_ptr<TlsDialer>> open(TlsDialerOptions options);
  ~TlsDialer();  // closes every connection

  // Of 127.0.0.1, where CAF connects.
  std::uint16_t port() const;
  // Why the last connection failed; empty: it did not.
  std::string last_error() const;

  struct State;

 private:
  explicit TlsDialer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Whether the relay lets this host in; waits for at most `patience`. Errors say by name what is
// wrong: kUnavailable, nothing answers or the run is not ready; kInvalidArgument, another
// authority, an expired certificate, not TLS, another host's name, another version, a role that is
// missing; kTimeout, it accepts connections and says nothing.
Result<void> probe_relay(const TlsDialerOptions& options);

}  // namespace troupe::actors
