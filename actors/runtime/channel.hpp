// The data plane's seam: whole messages between one server and many clients, with bounded queues
// and no blocking sends. Same process: shared pointers, no copy. Other process or host: ZeroMQ ipc
// or tcp. An endpoint object belongs to one thread; the two sides may be in different threads or
// processes.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "envs/spec/result.hpp"

namespace troupe::actors {

using Bytes = std::vector<std::uint8_t>;
// A message is a kind byte of the protocol above, and a payload shared by reference.
struct ChannelMessage {
  std::uint8_t kind = 0;
  std::shared_ptr<const Bytes> payload;
};

struct ChannelLimits {
  std::size_t max_message_bytes = std::size_t{256} << 20;  // larger ones are refused, not allocated
  int high_water_mark = 1000;                              // messages queued per peer
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
