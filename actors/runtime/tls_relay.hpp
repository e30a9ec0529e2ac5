// What other hosts can reach of a run: accepts connections, lets in who shows a certificate of the
// cluster with the right role, and only then connects to the loopback port behind it, where CAF
// listens, and copies bytes. No stranger's byte reaches CAF. A thread of its own; no CAF here.
//
// After the handshake a client gets one byte: 0, it is let in, or the length of a reason that
// follows before the relay hangs up.
//
// Bounds: Lobby::Limits connections in their handshake, each for kHandshakeLimit at most;
// `most_open` open ones with 128 KiB of buffers each at worst, and OpenSSL's own about 40 KiB.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "actors/runtime/basp_frames.hpp"
#include "actors/runtime/strangers.hpp"
#include "actors/runtime/tls_session.hpp"

namespace troupe::actors {

struct TlsRelayOptions {
  std::string host = "0.0.0.0";  // address to listen at
  std::uint16_t port = 0;        // 0: any free one
  std::uint16_t backend = 0;     // port of 127.0.0.1 behind it
  std::shared_ptr<const TlsCredentials> credentials{};
  // Roles that are let in, and the types of message each may send; null: all. Whoever has several
  // roles gets the first that fits.
  std::vector<std::pair<std::string, const MessageTypes*>> roles{};
  std::uint32_t most_payload = std::uint32_t{16} << 20;  // bytes of one message
  Lobby::Limits lobby{};
  std::size_t most_open = 4096, most_open_per_address = 1024;
  std::chrono::milliseconds patience{3000};  // with a handshake
  // Lines worth a warning, rate limited; on the relay's thread.
  std::function<void(const std::string& line)> warn = [](const std::string&) {};
};

class TlsRelay {
 public:
  // kUnavailable: the address is in use. kInvalidArgument: not an address of this host, or
  // credentials without the role coordinator.
  static Result<std::unique_ptr<TlsRelay>> open(TlsRelayOptions options);
  ~TlsRelay();  // closes every connection

  std::uint16_t port() const;

  struct Counts {
    std::uint64_t accepted = 0, admitted = 0, dropped = 0;
    std::size_t open = 0, in_handshake = 0;
    std::map<std::string, std::uint64_t> dropped_because;
  };
  Counts counts() const;  // from any thread

  struct State;

 private:
  explicit TlsRelay(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace troupe::actors
