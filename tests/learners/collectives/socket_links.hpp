// Byte links over socket pairs: what the ring is tested on.
#pragma once

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "learners/collectives/byte_link.hpp"

namespace troupe::learners {

// One end of a socket pair, non-blocking.
class SocketEnd {
 public:
  explicit SocketEnd(int descriptor) : descriptor_(descriptor) {}
  SocketEnd(SocketEnd&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  SocketEnd(const SocketEnd&) = delete;
  SocketEnd& operator=(const SocketEnd&) = delete;
  ~SocketEnd() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }

  // Calls move(descriptor, done) until `size` bytes have moved.
  template <class Move>
  Result<void> move(std::size_t size, std::chrono::milliseconds timeout, short event, Move move) {
    const auto deadline = std::chrono::steady_clock::now() + timeout;
    for (std::size_t done = 0; done < size;) {
      const ssize_t moved = move(descriptor_, done);
      if (moved > 0) {
        done += static_cast<std::size_t>(moved);
        continue;
      }
      if (moved == 0) return fail(ErrorCode::kUnavailable, "the socket was closed");
      if (errno != EAGAIN && errno != EINTR)
        return fail(ErrorCode::kUnavailable, std::strerror(errno));
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
          deadline - std::chrono::steady_clock::now());
      if (left.count() <= 0) return fail(ErrorCode::kTimeout, "the socket stood still");
      pollfd poll{descriptor_, event, 0};
      ::poll(&poll, 1, static_cast<int>(left.count()));
    }
    return {};
  }

 private:
  int descriptor_;
};

class SocketSender final : public ByteSender {
 public:
  explicit SocketSender(int descriptor) : end_(descriptor) {}
  Result<void> send(std::span<const std::uint8_t> bytes,
                    std::chrono::milliseconds timeout) override {
    return end_.move(bytes.size(), timeout, POLLOUT, [&](int descriptor, std::size_t done) {
      return ::send(descriptor, bytes.data() + done, bytes.size() - done,
                    MSG_NOSIGNAL | MSG_DONTWAIT);
    });
  }

 private:
  SocketEnd end_;
};

class SocketReceiver final : public ByteReceiver {
 public:
  explicit SocketReceiver(int descriptor) : end_(descriptor) {}
  Result<void> receive(std::span<std::uint8_t> bytes, std::chrono::milliseconds timeout) override {
    return end_.move(bytes.size(), timeout, POLLIN, [&](int descriptor, std::size_t done) {
      return ::recv(descriptor, bytes.data() + done, bytes.size() - done, MSG_DONTWAIT);
    });
  }

 private:
  SocketEnd end_;
};

// The links of a ring: rank i sends on senders[i] and receives on receivers[i].
struct SocketRing {
  std::vector<std::unique_ptr<ByteSender>> senders;
  std::vector<std::unique_ptr<ByteReceiver>> receivers;
};

inline SocketRing make_socket_ring(int size) {
  SocketRing ring;
  ring.receivers.resize(static_cast<std::size_t>(size));
  for (int rank = 0; rank < size; ++rank) {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) std::abort();
    ring.senders.push_back(std::make_unique<SocketSender>(ends[0]));
    ring.receivers[static_cast<std::size_t>((rank + 1) % size)] =
        std::make_unique<SocketReceiver>(ends[1]);
  }
  return ring;
}

}  // namespace troupe::learners
