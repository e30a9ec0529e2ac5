// See relay_loop.hpp.
#include "actors/runtime/relay_loop.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace troupe::actors {
namespace {

constexpr RelayLoop::Id kListener = 0, kWake = 1;
constexpr int kAcceptsPerRound = 64;
constexpr std::int64_t kLongestRoundMs = 5000;

Result<void> system_error(const std::string& what) {
  return fail(ErrorCode::kIo, what + ": " + std::strerror(errno));
}

}  // namespace

RelayLoop::RelayLoop(Socket listener, std::string thread_name, Accept accept,
                     std::function<void()> every_round)
    : listener_(std::move(listener)),
      name_(std::move(thread_name)),
      accept_(std::move(accept)),
      every_round_(std::move(every_round)) {}

Result<void> RelayLoop::start() {
  epoll_ = Socket(::epoll_create1(EPOLL_CLOEXEC));
  wake_ = Socket(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  // Given up for a moment when descriptors run out, so that a connection can be taken and closed.
  spare_ = Socket(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!epoll_ || !wake_ || !spare_) return system_error("cannot watch sockets");
  for (const auto& [id, socket] : {std::pair{kListener, &listener_}, std::pair{kWake, &wake_}}) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = id;
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, socket->get(), &event) != 0)
      return system_error("cannot watch a socket");
  }
  thread_ = std::thread([this] {
    ::pthread_setname_np(::pthread_self(), name_.substr(0, 15).c_str());
    run();
  });
  return {};
}

RelayLoop::~RelayLoop() {
  if (!thread_.joinable()) return;
  stop_ = true;
  const std::uint64_t one = 1;
  (void)!::write(wake_.get(), &one, sizeof one);
  thread_.join();
}

void RelayLoop::run() {
  std::array<epoll_event, 64> events{};
  while (!stop_) {
    const int count = ::epoll_wait(epoll_.get(), events.data(), events.size(), next_timeout());
    for (int i = 0; i < count; ++i) {
      const auto& event = events[static_cast<std::size_t>(i)];
      if (event.data.u64 == kListener)
        accept_all();
      else if (event.data.u64 != kWake)
        advance(event.data.u64, (event.events & (EPOLLERR | EPOLLHUP)) != 0);
    }
    expire_overdue();
    every_round_();
    for (const Id id : std::exchange(dropped_, {})) entries_.erase(id);
  }
  entries_.clear();
}

void RelayLoop::accept_all() {
  for (int i = 0; i < kAcceptsPerRound; ++i) {
    sockaddr_storage peer{};
    socklen_t size = sizeof peer;
    Socket socket(::accept4(listener_.get(), reinterpret_cast<sockaddr*>(&peer), &size,
                            SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!socket) {
      if (errno != EMFILE && errno != ENFILE) return;
      spare_ = Socket();
      Socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      spare_ = Socket(::open("/dev/null", O_RDONLY | O_CLOEXEC));
      return;
    }
    tune_socket(socket);
    const Id id = next_id_++;
    auto connection = accept_(id, std::move(socket), peer);
    if (!connection) continue;
    entries_[id].connection = std::move(connection);
    advance(id, false);
    // At once: under a flood this round may be long.
    for (const Id dropped : std::exchange(dropped_, {})) entries_.erase(dropped);
  }
}

void RelayLoop::advance(Id id, bool broken) {
  const auto found = entries_.find(id);
  if (found == entries_.end()) return;  // ended earlier in this round
  const auto now = std::chrono::steady_clock::now();
  if (!found->second.connection->advance(broken, now) || !sync(id, found->second))
    entries_.erase(found);
}

bool RelayLoop::sync(Id id, Entry& entry) {
  for (const auto& [socket, events] : entry.connection->watched()) {
    if (socket == nullptr || !*socket) continue;
    const auto known = entry.watched.find(socket->get());
    if (known != entry.watched.end() && known->second == events) continue;
    epoll_event event{};
    event.events = events;
    event.data.u64 = id;
    const int action = known == entry.watched.end() ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;
    if (::epoll_ctl(epoll_.get(), action, socket->get(), &event) != 0) return false;
    entry.watched[socket->get()] = events;
  }
  return true;
}

int RelayLoop::next_timeout() const {
  const auto now = std::chrono::steady_clock::now();
  auto first = now + std::chrono::milliseconds(kLongestRoundMs);
  for (const auto& [id, entry] : entries_) first = std::min(first, entry.connection->deadline());
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(first - now);
  return static_cast<int>(std::max<std::int64_t>(left.count(), 0));
}

void RelayLoop::expire_overdue() {
  const auto now = std::chrono::steady_clock::now();
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    if (entry->second.connection->deadline() > now) {
      ++entry;
      continue;
    }
    entry->second.connection->expire();
    entry = entries_.erase(entry);
  }
}

}  // namespace troupe::actors
