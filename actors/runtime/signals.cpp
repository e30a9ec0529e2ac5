#include "actors/runtime/signals.hpp"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <utility>

#include "actors/runtime/thread_settings.hpp"

namespace troupe::actors {
namespace {

sigset_t stop_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&set, signal);
  return set;
}

void listen(int signals, int wake, const std::function<void(int, int)>& on_signal) {
  name_thread("signals");
  int count = 0;
  pollfd items[2] = {{signals, POLLIN, 0}, {wake, POLLIN, 0}};
  for (;;) {
    if (::poll(items, 2, -1) < 0) continue;  // EINTR
    if (items[1].revents != 0) return;
    signalfd_siginfo info{};
    if (::read(signals, &info, sizeof info) == static_cast<ssize_t>(sizeof info))
      on_signal(static_cast<int>(info.ssi_signo), ++count);
  }
}

}  // namespace

void block_stop_signals() {
  const sigset_t set = stop_signals();
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
}

Result<SignalListener> SignalListener::start(std::function<void(int, int)> on_signal) {
  const sigset_t set = stop_signals();
  const int signals = ::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  const int wake = ::eventfd(0, EFD_CLOEXEC);
  if (signals < 0 || wake < 0) {
    const std::string reason = strerror(errno);
    if (signals >= 0) ::close(signals);
    if (wake >= 0) ::close(wake);
    return fail(ErrorCode::kIo, "cannot listen for signals: " + reason);
  }
  return SignalListener(signals, wake, std::move(on_signal));
}

SignalListener::SignalListener(int signals, int wake, std::function<void(int, int)> on_signal)
    : signals_(signals),
      wake_(wake),
      thread_([signals, wake, act = std::move(on_signal)] { listen(signals, wake, act); }) {}

SignalListener::SignalListener(SignalListener&& other) noexcept
    : signals_(std::exchange(other.signals_, -1)),
      wake_(std::exchange(other.wake_, -1)),
      thread_(std::move(other.thread_)) {}

SignalListener::~SignalListener() {
  if (!thread_.joinable()) return;
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(wake_, &one, sizeof one);
  thread_.join();
  ::close(signals_);
  ::close(wake_);
}

}  // namespace troupe::actors
