// The data plane's seam: whole messages between one server and many clients, with bounded queues
// and no blocking sends. Same process: shared pointers, no copy. Other process or host: ZeroMQ ipc
// or tcp. An endpoint object belongs to one thread; the two sides may be in different threads or
// processes.
#pragma once

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "actors/runtime/addresses.hpp"
#include "actors/runtime/curve_keys.hpp"
#include "envs/spec/result.hpp"

namespace troupe::actors {

using Bytes = std::vector<std::uint8_t>;

// Bytes that nobody changes any more, shared by reference; aligned for 8-byte numbers at least.
class Payload {
 public:
  Payload() = default;        // absent; receivers see an empty one in its place
  Payload(std::nullptr_t) {}  // NOLINT(google-explicit-constructor)
  template <class T>
  requires std::convertible_to<std::shared_ptr<T>, std::shared_ptr<const Bytes>> Payload(
      std::shared_ptr<T> bytes)  // NOLINT(google-explicit-constructor)
      : bytes_(bytes ? std::span<const std::uint8_t>(*bytes) : std::span<const std::uint8_t>()),
        owner_(std::move(bytes)) {}
  // Bytes that live as long as `owner`.
  Payload(std::shared_ptr<const void> owner, std::span<const std::uint8_t> bytes)
      : bytes_(bytes), owner_(std::move(owner)) {}

  explicit operator bool() const { return owner_ != nullptr; }
  const std::span<const std::uint8_t>& operator*() const { return bytes_; }
  const std::span<const std::uint8_t>* operator->() const { return &bytes_; }

 private:
  std::span<const std::uint8_t> bytes_;
  std::shared_ptr<const void> owner_;
};

// A message is a kind byte of the protocol above, and a payload.
struct ChannelMessage {
  std::uint8_t kind = 0;
  Payload payload;
};

struct ChannelLimits {
  std::size_t max_message_bytes = std::size_t{256} << 20;  // larger ones are refused, not allocated
  int high_water_mark = 1000;                              // messages queued per peer
  // Encrypts what other hosts can reach (!is_loopback), and lets in nobody but the cluster's
  // workers; null: plain text.
  std::shared_ptr<const CurveKeys> curve = process_curve_keys();
};

// Peer names are chosen by clients and unique per server (a node's name and incarnation).
class ChannelServer {
 public:
  struct Received {
    std::string peer;
    ChannelMessage message;
  };
  // Once the destructor returns, the address is free.
  virtual ~ChannelServer() = default;
  // Where clients connect: "inproc://…", "ipc://…" or "tcp://host:port" with the real port.
  virtual std::string endpoint() const = 0;
  // kUnavailable when the peer is gone or its queue is full: the caller counts or resends.
  virtual Result<void> send(const std::string& peer, ChannelMessage message) = 0;
  // Waits at most `timeout`; nullopt when nothing came.
  virtual std::optional<Received> receive(std::chrono::milliseconds timeout) = 0;
  // Malformed or oversized messages dropped so far.
  virtual std::uint64_t dropped() const = 0;
};

class ChannelClient {
 public:
  virtual ~ChannelClient() = default;
  virtual Result<void> send(ChannelMessage message) = 0;
  virtual std::optional<ChannelMessage> receive(std::chrono::milliseconds timeout) = 0;
};

// `endpoint`: "inproc://NAME" (name unique in the process), "ipc://PATH", "tcp://HOST:PORT" or
// "tcp://HOST:*" for any free port. Errors name the endpoint (kUnavailable: address in use).
Result<std::unique_ptr<ChannelServer>> open_channel_server(const std::string& endpoint,
                                                           ChannelLimits limits = {});
// Connects in the background and reconnects by itself; a server that is not there yet is no error.
Result<std::unique_ptr<ChannelClient>> open_channel_client(const std::string& endpoint,
                                                           const std::string& peer_name,
                                                           ChannelLimits limits = {});

}  // namespace troupe::actors
