// The channel between processes: a ROUTER socket serves, DEALER sockets connect, over ipc or tcp.
// A message is one multipart: a frame with the kind byte, then the payload. What clients send comes
// in frames of at most 1 MiB, so that no stranger's length header makes the server allocate more.
// What the server sends comes in one frame, which the client keeps as it was received: a batch of
// 20 MB is copied nowhere but in the kernel. Each endpoint object belongs to one thread; the bytes
// move on the context's I/O thread.
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "actors/runtime/channel_implementations.hpp"
#include "actors/runtime/zmq_context.hpp"

namespace troupe::actors {
namespace {

using Milliseconds = std::chrono::milliseconds;

constexpr std::size_t kFrameBytes = std::size_t{1} << 20;  // that a server takes
constexpr std::size_t kKeptAbove = std::size_t{1} << 16;   // smaller frames may lie anywhere
constexpr std::size_t kCopyBelow = 2048;  // smaller payloads are cheaper to copy than to share
// Over loopback a kernel buffer that stays in the CPU's caches moves half as much again as the
// megabytes that TCP's own tuning arrives at; a network needs these for what is on its way.
constexpr int kLoopbackSendBuffer = 1 << 19;
constexpr int kLingerMs = 1000;
constexpr int kHandshakeMs = 5000;
// A vanished host is noticed by TCP itself. Not by ZeroMQ's heartbeats: libzmq 4.3.4 aborts the
// process
// ("Assertion failed: !_io_error") when a heartbeat expires on a connection whose receiver is full.
// Frozen peers are the coordinator's business, which pings.
constexpr int kKeepaliveIdle = 10, kKeepaliveInterval = 5, kKeepaliveProbes = 4;  // s, s, probes
constexpr int kReconnectMs = 50, kReconnectMaxMs = 2000;

constexpr std::string_view kIpcScheme = "ipc://";

bool is_ipc(const std::string& endpoint) { return endpoint.starts_with(kIpcScheme); }

zmq::socket_t make_socket(zmq::socket_type type, const std::string& endpoint,
                          const ChannelLimits& limits, std::size_t largest_frame) {
  zmq::socket_t socket(zmq_context(), type);
  if (is_loopback(endpoint) && !is_ipc(endpoint))
    socket.set(zmq::sockopt::sndbuf, kLoopbackSendBuffer);
  socket.set(zmq::sockopt::linger, kLingerMs);
  socket.set(zmq::sockopt::sndhwm, limits.high_water_mark);
  socket.set(zmq::sockopt::rcvhwm, limits.high_water_mark);
  socket.set(zmq::sockopt::maxmsgsize, static_cast<std::int64_t>(largest_frame));
  socket.set(zmq::sockopt::handshake_ivl, kHandshakeMs);
  socket.set(zmq::sockopt::tcp_keepalive, 1);
  socket.set(zmq::sockopt::tcp_keepalive_idle, kKeepaliveIdle);
  socket.set(zmq::sockopt::tcp_keepalive_intvl, kKeepaliveInterval);
  socket.set(zmq::sockopt::tcp_keepalive_cnt, kKeepaliveProbes);
  return socket;
}

// A frame that refers to the payload's bytes and keeps them alive until ZeroMQ has sent them.
zmq::message_t shared_frame(const Payload& payload, std::size_t offset, std::size_t size) {
  if (size < kCopyBelow) return zmq::message_t(payload->data() + offset, size);
  auto* owner = new Payload(payload);
  const auto release = [](void*, void* hint) { delete static_cast<Payload*>(hint); };
  // ZeroMQ takes a mutable pointer but only reads from it.
  auto* data = const_cast<std::uint8_t*>(payload->data() + offset);
  return zmq::message_t(data, size, release, owner);
}

enum class Sent { kYes, kQueueFull, kNoPeer };

// Sends one frame without waiting.
Sent send_frame(zmq::socket_t& socket, zmq::message_t frame, bool more) {
  const auto flags =
      more ? zmq::send_flags::dontwait | zmq::send_flags::sndmore : zmq::send_flags::dontwait;
  try {
    return socket.send(frame, flags) ? Sent::kYes : Sent::kQueueFull;
  } catch (const zmq::error_t& error) {
    if (error.num() == EHOSTUNREACH) return Sent::kNoPeer;
    if (error.num() == EINTR) return Sent::kQueueFull;
    throw;
  }
}

// Sends the whole message or nothing: ZeroMQ decides at the first frame. When the peer goes in the
// middle, it rolls back what it had and drops the rest, so the rest must still be handed to it.
Sent send_message(zmq::socket_t& socket, const std::string* peer, const ChannelMessage& message) {
  const Payload& payload = message.payload;
  const std::size_t size = payload ? payload->size() : 0;
  const std::size_t most = peer ? std::max<std::size_t>(size, 1) : kFrameBytes;
  Sent result = Sent::kYes;
  if (peer) {
    result = send_frame(socket, zmq::message_t(peer->data(), peer->size()), true);
    if (result != Sent::kYes) return result;
  }
  const Sent first = send_frame(socket, zmq::message_t(&message.kind, 1), size > 0);
  if (first != Sent::kYes && !peer) return first;
  result = first;
  for (std::size_t offset = 0; offset < size; offset += most) {
    const std::size_t part = std::min(most, size - offset);
    const Sent sent = send_frame(socket, shared_frame(payload, offset, part), offset + part < size);
    if (sent != Sent::kYes) result = sent;
  }
  return result;
}

// Waits for the first frame of a message; a stopped and continued process (EINTR) sees a time-out.
std::optional<zmq::message_t> receive_first(zmq::socket_t& socket, Milliseconds timeout) {
  try {
    zmq::message_t frame;
    if (socket.recv(frame, zmq::recv_flags::dontwait)) return frame;
    if (timeout <= Milliseconds::zero()) return std::nullopt;
    zmq::pollitem_t item{socket.handle(), 0, ZMQ_POLLIN, 0};
    zmq::poll(&item, 1, timeout);
    if (socket.recv(frame, zmq::recv_flags::dontwait)) return frame;
  } catch (const zmq::error_t& error) {
    if (error.num() != EINTR) throw;
  }
  return std::nullopt;
}

// The frames that belong to a message whose first frame is here; all of them have arrived. Stops
// keeping them once they exceed the limit, but takes them all. nullopt: too large.
std::optional<std::vector<zmq::message_t>> receive_rest(zmq::socket_t& socket, bool more,
                                                        std::size_t limit) {
  std::vector<zmq::message_t> frames;
  std::size_t total = 0;
  bool fits = true;
  while (more) {
    zmq::message_t frame;
    if (!socket.recv(frame, zmq::recv_flags::none)) continue;
    more = frame.more();
    total += frame.size();
    fits = fits && total <= limit;
    if (fits)
      frames.push_back(std::move(frame));
    else
      frames.clear();
  }
  if (!fits) return std::nullopt;
  return frames;
}

// The payload of its frames: kept where it is if it came in one, otherwise joined, each frame freed
// once copied.
Payload join(std::vector<zmq::message_t>& frames) {
  if (frames.empty()) return empty_payload();
  if (frames.size() == 1 && frames.front().size() >= kKeptAbove) {
    auto frame = std::make_shared<zmq::message_t>(std::move(frames.front()));
    const std::span bytes(frame->data<const std::uint8_t>(), frame->size());
    return {std::move(frame), bytes};
  }
  std::size_t total = 0;
  for (const zmq::message_t& frame : frames) total += frame.size();
  auto bytes = std::make_shared<Bytes>();
  bytes->reserve(total);
  for (zmq::message_t& frame : frames) {
    const auto* data = frame.data<std::uint8_t>();
    bytes->insert(bytes->end(), data, data + frame.size());
    frame.rebuild();
  }
  return bytes;
}

// ipc files are silently replaced by ZeroMQ, so a living server must be noticed before.
bool somebody_listens(const std::string& path) {
  sockaddr_un address{};
  if (path.size() >= sizeof address.sun_path) return false;
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  const int probe = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (probe < 0) return false;
  const int connected = ::connect(probe, reinterpret_cast<sockaddr*>(&address), sizeof address);
  const bool listens = connected == 0 || errno == EAGAIN || errno == EINPROGRESS;
  ::close(probe);
  return listens;
}

tl::unexpected<Error> bind_error(const std::string& endpoint, int number) {
  if (number == EADDRINUSE)
    return fail(ErrorCode::kUnavailable,
                "address in use: another process serves " + endpoint +
                    "; stop it, or choose another port or * for any free one");
  const std::string what = "cannot serve " + endpoint + ": ";
  const bool foreign = number == ENODEV || number == EADDRNOTAVAIL;
  if (foreign || number == EINVAL || number == ENAMETOOLONG)
    return fail(ErrorCode::kInvalidArgument,
                what + (foreign ? "no interface of this host has that address"
                                : std::string(zmq_strerror(number))));
  return fail(ErrorCode::kIo, what + zmq_strerror(number));
}

// Stops listening and waits until that has happened: ZeroMQ does it later, on its own thread, and a
// server opened again in between would find its port taken.
void free_address(zmq::socket_t& socket, const std::string& endpoint) {
  // ZeroMQ leaves socket files behind. Still bound, the file is certainly ours.
  if (is_ipc(endpoint)) ::unlink(endpoint.substr(kIpcScheme.size()).c_str());
  try {
    const std::string watch = "inproc://closing " + endpoint;
    if (::zmq_socket_monitor(socket.handle(), watch.c_str(), ZMQ_EVENT_CLOSED) != 0) return;
    zmq::socket_t events(zmq_context(), zmq::socket_type::pair);
    events.set(zmq::sockopt::linger, 0);
    events.connect(watch);
    socket.unbind(endpoint);
    zmq::pollitem_t item{events.handle(), 0, ZMQ_POLLIN, 0};
    zmq::poll(&item, 1, Milliseconds(kLingerMs));
    ::zmq_socket_monitor(socket.handle(), nullptr, 0);
  } catch (const zmq::error_t&) {
    // Then closing the socket has to do.
  }
}

class ZmqServer final : public ChannelServer {
 public:
  ZmqServer(zmq::socket_t socket, ChannelLimits limits)
      : socket_(std::move(socket)),
        limits_(limits),
        endpoint_(socket_.get(zmq::sockopt::last_endpoint)) {}

  ~ZmqServer() override { free_address(socket_, endpoint_); }

  std::string endpoint() const override { return endpoint_; }

  Result<void> send(const std::string& peer, ChannelMessage message) override {
    if (auto checked = check_size(message, limits_, peer); !checked) return checked;
    switch (send_message(socket_, &peer, message)) {
      case Sent::kYes:
        return {};
      case Sent::kQueueFull:
        return fail(ErrorCode::kUnavailable,
                    "the queue of peer " + peer + " on " + endpoint_ + " is full");
      case Sent::kNoPeer:
        break;
    }
    return fail(ErrorCode::kUnavailable, "peer " + peer + " is not connected to " + endpoint_);
  }

  std::optional<Received> receive(Milliseconds timeout) override {
    const auto deadline = std::chrono::steady_clock::now() + timeout;
    for (;;) {
      // Rounded up: a wait of 1 ms that is rounded down is none, and its caller spins.
      const auto left =
          std::chrono::ceil<Milliseconds>(deadline - std::chrono::steady_clock::now());
      std::optional<zmq::message_t> peer = receive_first(socket_, left);
      if (peer) {
        if (auto received = read_from(peer->to_string(), peer->more())) return received;
        ++dropped_;
      } else if (left <= Milliseconds::zero()) {
        return std::nullopt;
      }
    }
  }

  std::uint64_t dropped() const override { return dropped_; }

 private:
  // nullopt for anything that no channel client sends; all its frames are consumed.
  std::optional<Received> read_from(std::string peer, bool more) {
    auto frames = receive_rest(socket_, more, limits_.max_message_bytes + 1);
    const bool named = !peer.empty() && peer.front() != '\0';
    if (!named || !frames || frames->empty() || frames->front().size() != 1) return std::nullopt;
    const std::uint8_t kind = *frames->front().data<std::uint8_t>();
    frames->erase(frames->begin());
    return Received{std::move(peer), {kind, join(*frames)}};
  }

  zmq::socket_t socket_;
  const ChannelLimits limits_;
  const std::string endpoint_;
  std::uint64_t dropped_ = 0;
};

class ZmqClient final : public ChannelClient {
 public:
  ZmqClient(zmq::socket_t socket, std::string endpoint, ChannelLimits limits)
      : socket_(std::move(socket)), endpoint_(std::move(endpoint)), limits_(limits) {}

  Result<void> send(ChannelMessage message) override {
    if (auto checked = check_size(message, limits_, endpoint_); !checked) return checked;
    if (send_message(socket_, nullptr, message) == Sent::kYes) return {};
    return fail(ErrorCode::kUnavailable,
                "not connected to " + endpoint_ + ", or the queue to it is full");
  }

  std::optional<ChannelMessage> receive(Milliseconds timeout) override {
    auto first = receive_first(socket_, timeout);
    if (!first) return std::nullopt;
    auto frames = receive_rest(socket_, first->more(), limits_.max_message_bytes);
    if (!frames || first->size() != 1) return std::nullopt;
    return ChannelMessage{*first->data<std::uint8_t>(), join(*frames)};
  }

 private:
  zmq::socket_t socket_;
  const std::string endpoint_;
  const ChannelLimits limits_;
};

}  // namespace

Result<std::unique_ptr<ChannelServer>> open_zmq_server(const std::string& endpoint,
                                                       ChannelLimits limits) {
  if (is_ipc(endpoint) && somebody_listens(endpoint.substr(kIpcScheme.size())))
    return bind_error(endpoint, EADDRINUSE);
  try {
    zmq::socket_t socket = make_socket(zmq::socket_type::router, endpoint, limits, kFrameBytes);
    socket.set(zmq::sockopt::router_mandatory, true);
    socket.set(zmq::sockopt::router_handover, true);
    if (limits.curve && !is_loopback(endpoint))
      accept_curve(zmq_context(), socket, *limits.curve, CurveClients::kWorkers);
    socket.bind(endpoint);
    return std::make_unique<ZmqServer>(std::move(socket), limits);
  } catch (const zmq::error_t& error) {
    return bind_error(endpoint, error.num());
  }
}

Result<std::unique_ptr<ChannelClient>> open_zmq_client(const std::string& endpoint,
                                                       const std::string& peer_name,
                                                       ChannelLimits limits) {
  try {
    zmq::socket_t socket =
        make_socket(zmq::socket_type::dealer, endpoint, limits, limits.max_message_bytes + 1);
    socket.set(zmq::sockopt::routing_id, peer_name);
    socket.set(zmq::sockopt::immediate, true);  // queue only towards a living server
    socket.set(zmq::sockopt::reconnect_ivl, kReconnectMs);
    socket.set(zmq::sockopt::reconnect_ivl_max, kReconnectMaxMs);
    if (limits.curve && !is_loopback(endpoint)) connect_curve(socket, *limits.curve);
    socket.connect(endpoint);
    return std::make_unique<ZmqClient>(std::move(socket), endpoint, limits);
  } catch (const zmq::error_t& error) {
    return fail(ErrorCode::kInvalidArgument,
                "cannot connect to " + endpoint + ": " + zmq_strerror(error.num()));
  }
}

}  // namespace troupe::actors
