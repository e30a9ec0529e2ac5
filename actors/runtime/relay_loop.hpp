// One thread with one epoll that accepts connections and moves the bytes of each between two
// sockets. What a connection does is its own business (tls_relay.cpp, tls_dialer.cpp); this calls
// it when something can be done. No CAF.
#pragma once

#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "envs/spec/result.hpp"

namespace troupe::actors {

// A socket that closes itself.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int descriptor) : descriptor_(descriptor) {}
  Socket(Socket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~Socket();
  int get() const { return descriptor_; }
  explicit operator bool() const { return descriptor_ >= 0; }

 private:
  int descriptor_ = -1;
};

// Listening, non-blocking, at a numeric address or a name. Port 0: any free one. kUnavailable: in
// use; kInvalidArgument: not an address of this host.
Result<Socket> listen_at(const std::string& host, std::uint16_t port);
// Starts to connect to a numeric address or a name without waiting for it (but for the name).
Result<Socket> start_connect(const std::string& host, std::uint16_t port);
std::uint16_t port_of(const Socket& socket);
// 0, or why a connect that was started has failed.
int connect_result(const Socket& socket);
// "10.1.2.3" and "10.1.2.3:4711".
std::string address_of(const sockaddr_storage& peer, bool with_port);
// The same on IPv4 and IPv6: small packets at once, and a peer that vanished is noticed.
void tune_socket(const Socket& socket);
// Says that nothing more comes and takes what lies unread: closing a socket on unread bytes may
// cost the peer the last ones it was sent, which say what was wrong.
void hang_up(const Socket& socket);
// The user that owns the other end of a connection within this host; -1: not known.
std::int64_t owner_of_peer(const Socket& socket);

class RelayConnection {
 public:
  using Time = std::chrono::steady_clock::time_point;
  struct Watched {
    const Socket* socket = nullptr;
    std::uint32_t events = 0;  // EPOLLIN, EPOLLOUT that it waits for
  };
  virtual ~RelayConnection() = default;
  // Goes as far as it can without waiting; `broken`: the kernel says that one of its sockets is
  // done. False: it is over.
  virtual bool advance(bool broken, Time now) = 0;
  // After advance().
  virtual std::vector<Watched> watched() const = 0;
  // Past this expire() is called and it is over; max(): never.
  virtual Time deadline() const { return Time::max(); }
  virtual void expire() {}
};

class RelayLoop {
 public:
  using Id = std::uint64_t;
  // On the loop's thread: a connection for a socket that was accepted, or null to drop it.
  using Accept = std::function<std::unique_ptr<RelayConnection>(Id id, Socket socket,
                                                                const sockaddr_storage&)>;

  // `every_round`: on the loop's thread, at least every few seconds.
  RelayLoop(
      Socket listener, std::string thread_name, Accept accept,
      std::function<void()> every_round = [] {});
  ~RelayLoop();  // closes every connection
  RelayLoop(const RelayLoop&) = delete;
  RelayLoop& operator=(const RelayLoop&) = delete;

  Result<void> start();
  std::uint16_t port() const { return port_of(listener_); }
  // Only from within accept or a connection: ends one after this round.
  void drop(Id id) { dropped_.push_back(id); }

 private:
  struct Entry {
    std::unique_ptr<RelayConnection> connection;
    std::map<int, std::uint32_t> watched;  // descriptor -> events
  };
  void run();
  void accept_all();
  void advance(Id id, bool broken);
  bool sync(Id id, Entry& entry);
  int next_timeout() const;
  void expire_overdue();

  Socket listener_;
  std::string name_;
  Accept accept_;
  std::function<void()> every_round_;
  Socket epoll_, wake_, spare_;
  std::map<Id, Entry> entries_;
  std::vector<Id> dropped_;
  Id next_id_ = 2;  // below: the listener and the wake-up
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace troupe::actors
