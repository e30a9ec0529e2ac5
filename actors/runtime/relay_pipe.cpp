// See relay_pipe.hpp.
#include "actors/runtime/relay_pipe.hpp"

#include <sys/epoll.h>

#include <cerrno>

namespace troupe::actors {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{64} << 10;
constexpr int kRounds = 16;  // of a fair share

}  // namespace

std::span<std::uint8_t> RelayPipe::Buffer::room() {
  if (bytes.empty()) bytes.resize(kBufferBytes);
  if (begin == end) begin = end = 0;
  return std::span(bytes).subspan(end);
}

void RelayPipe::Buffer::drop_front(std::size_t count) {
  begin += count;
  if (begin < end) return;
  begin = end = 0;
  std::vector<std::uint8_t>().swap(bytes);
}

void RelayPipe::end(std::string why) {
  over_ = true;
  if (fault_.empty()) fault_ = std::move(why);
}

bool RelayPipe::move(TlsSession& session, const Socket& plain, bool broken) {
  bool ever = false;
  for (int round = 0; round < kRounds && !over_; ++round) {
    bool moved = read_session(session);
    moved = write_plain(plain) || moved;
    moved = read_plain(plain) || moved;
    moved = write_session(session) || moved;
    if (!moved) break;
    ever = true;
  }
  if (session_ended_ && inwards_.empty()) end();
  if (plain_ended_ && outwards_.empty()) end();
  // What a dead socket still held has been taken; its other direction will never move again.
  if (broken && !ever) end();
  return !over_;
}

bool RelayPipe::read_session(TlsSession& session) {
  if (session_ended_ || over_) return false;
  const std::span<std::uint8_t> room = inwards_.room();
  if (room.empty()) return false;
  std::size_t got = 0;
  read_wants_write_ = false;
  switch (session.read(room, got)) {
    case TlsSession::Step::kDone:
      if (auto right = frames_.follow(room.first(got)); !right) {
        end(right.error().message);
        return false;
      }
      inwards_.end += got;
      bytes_ += got;
      return true;
    case TlsSession::Step::kWantWrite:
      read_wants_write_ = true;
      break;
    case TlsSession::Step::kWantRead:
      break;
    case TlsSession::Step::kClosed:
    case TlsSession::Step::kFailed:
      session_ended_ = true;
      break;
  }
  if (inwards_.empty()) inwards_.drop_front(0);
  return false;
}

bool RelayPipe::write_plain(const Socket& plain) {
  if (inwards_.empty() || over_) return false;
  const ssize_t sent = ::send(plain.get(), inwards_.bytes.data() + inwards_.begin,
                              inwards_.end - inwards_.begin, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent > 0) inwards_.drop_front(static_cast<std::size_t>(sent));
  if (sent < 0 && errno != EAGAIN && errno != EINTR) end();
  return sent > 0;
}

bool RelayPipe::read_plain(const Socket& plain) {
  if (plain_ended_ || over_) return false;
  const std::span<std::uint8_t> room = outwards_.room();
  if (room.empty()) return false;
  const ssize_t got = ::recv(plain.get(), room.data(), room.size(), MSG_DONTWAIT);
  if (got > 0) {
    outwards_.end += static_cast<std::size_t>(got);
    bytes_ += static_cast<std::uint64_t>(got);
    return true;
  }
  if (got == 0 || (errno != EAGAIN && errno != EINTR)) plain_ended_ = true;
  if (outwards_.empty()) outwards_.drop_front(0);
  return false;
}

bool RelayPipe::write_session(TlsSession& session) {
  if (outwards_.empty() || over_) return false;
  std::size_t sent = 0;
  write_wants_read_ = false;
  const std::span<const std::uint8_t> bytes(outwards_.bytes.data() + outwards_.begin,
                                            outwards_.end - outwards_.begin);
  switch (session.write(bytes, sent)) {
    case TlsSession::Step::kDone:
      outwards_.drop_front(sent);
      return true;
    case TlsSession::Step::kWantRead:
      write_wants_read_ = true;
      return false;
    case TlsSession::Step::kWantWrite:
      return false;
    case TlsSession::Step::kClosed:
    case TlsSession::Step::kFailed:
      break;
  }
  end();
  return false;
}

std::uint32_t RelayPipe::session_events() const {
  const bool reads = (!session_ended_ && inwards_.end < kBufferBytes) || write_wants_read_;
  const bool writes = (!outwards_.empty() && !write_wants_read_) || read_wants_write_;
  return (reads ? EPOLLIN : 0U) | (writes ? EPOLLOUT : 0U);
}

std::uint32_t RelayPipe::plain_events() const {
  const bool reads = !plain_ended_ && outwards_.end < kBufferBytes;
  return (reads ? EPOLLIN : 0U) | (inwards_.empty() ? 0U : EPOLLOUT);
}

}  // namespace troupe::actors
