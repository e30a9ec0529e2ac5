// The sockets of relay_loop.hpp.
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <sstream>

#include "actors/runtime/relay_loop.hpp"

namespace troupe::actors {
namespace {

constexpr int kBacklog = 512;
constexpr int kKeepaliveIdle = 10, kKeepaliveInterval = 5, kKeepaliveProbes = 4;  // s, s, probes

using Addresses = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

Result<Addresses> resolve(const std::string& host, std::uint16_t port, int flags) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int failed = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (failed != 0)
    return fail(ErrorCode::kInvalidArgument,
                "cannot resolve " + host + ": " + gai_strerror(failed));
  return Addresses(found, ::freeaddrinfo);
}

std::string where(const std::string& host, std::uint16_t port) {
  return host + ":" + std::to_string(port);
}

void set(const Socket& socket, int level, int option, int value) {
  ::setsockopt(socket.get(), level, option, &value, sizeof value);
}

}  // namespace

Socket::~Socket() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Result<Socket> listen_at(const std::string& host, std::uint16_t port) {
  auto addresses = resolve(host, port, AI_PASSIVE);
  if (!addresses) return tl::unexpected(addresses.error());
  const addrinfo& first = **addresses;
  Socket socket(::socket(first.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  set(socket, SOL_SOCKET, SO_REUSEADDR, 1);
  if (!socket || ::bind(socket.get(), first.ai_addr, first.ai_addrlen) != 0 ||
      ::listen(socket.get(), kBacklog) != 0) {
    const int number = errno;
    if (number == EADDRINUSE)
      return fail(ErrorCode::kUnavailable,
                  "address in use: " + where(host, port) + "; choose another port, or 0 for any");
    return fail(number == EADDRNOTAVAIL ? ErrorCode::kInvalidArgument : ErrorCode::kIo,
                "cannot listen at " + where(host, port) + ": " + std::strerror(number));
  }
  return socket;
}

Result<Socket> start_connect(const std::string& host, std::uint16_t port) {
  auto addresses = resolve(host, port, 0);
  if (!addresses) return tl::unexpected(addresses.error());
  const addrinfo& first = **addresses;
  Socket socket(::socket(first.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket ||
      (::connect(socket.get(), first.ai_addr, first.ai_addrlen) != 0 && errno != EINPROGRESS))
    return fail(ErrorCode::kUnavailable,
                "nothing answers at " + where(host, port) + ": " + std::strerror(errno));
  tune_socket(socket);
  return socket;
}

std::uint16_t port_of(const Socket& socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(address).sin6_port
                                             : reinterpret_cast<sockaddr_in&>(address).sin_port);
}

int connect_result(const Socket& socket) {
  int error = 0;
  socklen_t size = sizeof error;
  if (::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) return errno;
  return error;
}

std::string address_of(const sockaddr_storage& peer, bool with_port) {
  std::array<char, NI_MAXHOST> host{};
  std::array<char, NI_MAXSERV> port{};
  if (::getnameinfo(reinterpret_cast<const sockaddr*>(&peer), sizeof peer, host.data(), host.size(),
                    port.data(), port.size(), NI_NUMERICHOST | NI_NUMERICSERV) != 0)
    return "an unknown address";
  return with_port ? std::string(host.data()) + ":" + port.data() : host.data();
}

void hang_up(const Socket& socket) {
  ::shutdown(socket.get(), SHUT_WR);
  std::array<char, 4096> rest{};
  for (int i = 0; i < 16 && ::recv(socket.get(), rest.data(), rest.size(), MSG_DONTWAIT) > 0; ++i) {
  }
}

// /proc/net/tcp has a line for each end: number, local and remote address (a.b.c.d as the
// hexadecimal number that the kernel holds, and the port), state, two queues, timers, owner.
std::int64_t owner_of_peer(const Socket& socket) {
  sockaddr_in own{}, peer{};
  socklen_t size = sizeof own;
  if (::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&own), &size) != 0) return -1;
  size = sizeof peer;
  if (::getpeername(socket.get(), reinterpret_cast<sockaddr*>(&peer), &size) != 0) return -1;
  std::array<char, 64> wanted{};
  std::snprintf(wanted.data(), wanted.size(), "%08X:%04X %08X:%04X", peer.sin_addr.s_addr,
                ntohs(peer.sin_port), own.sin_addr.s_addr, ntohs(own.sin_port));
  std::ifstream table("/proc/self/net/tcp");
  for (std::string line; std::getline(table, line);) {
    const auto at = line.find(wanted.data());
    if (at == std::string::npos) continue;
    std::istringstream rest(line.substr(at + std::strlen(wanted.data())));
    std::string state, queues, timer, retransmits;
    std::int64_t owner = -1;
    return rest >> state >> queues >> timer >> retransmits >> owner ? owner : -1;
  }
  return -1;
}

void tune_socket(const Socket& socket) {
  set(socket, IPPROTO_TCP, TCP_NODELAY, 1);
  set(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  set(socket, IPPROTO_TCP, TCP_KEEPIDLE, kKeepaliveIdle);
  set(socket, IPPROTO_TCP, TCP_KEEPINTVL, kKeepaliveInterval);
  set(socket, IPPROTO_TCP, TCP_KEEPCNT, kKeepaliveProbes);
}

}  // namespace troupe::actors
