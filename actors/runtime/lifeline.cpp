#include "actors/runtime/lifeline.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>

#include "actors/runtime/thread_settings.hpp"

namespace troupe::actors {
namespace {

enum class Ended { kParentGone, kDetached };

Ended wait_for_end(int descriptor, int wake) {
  pollfd items[2] = {{descriptor, POLLIN, 0}, {wake, POLLIN, 0}};
  for (;;) {
    if (::poll(items, 2, -1) < 0) continue;  // EINTR
    if (items[1].revents != 0) return Ended::kDetached;
    if (items[0].revents == 0) continue;
    char byte = 0;
    const ssize_t got = ::read(descriptor, &byte, 1);
    if (got == 0 || (got < 0 && errno != EINTR && errno != EAGAIN)) return Ended::kParentGone;
  }
}

}  // namespace

void exit_after(std::chrono::milliseconds limit, int exit_code, std::string why) {
  std::thread([limit, exit_code, line = "troupe: " + why + "\n"] {
    name_thread("watchdog");
    std::this_thread::sleep_for(limit);
    // The logger may be what hangs, so past it.
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
    ::_exit(exit_code);
  }).detach();
}

std::unique_ptr<Lifeline> Lifeline::attach(std::function<void()> on_parent_gone,
                                           std::chrono::milliseconds deadline) {
  const char* text = std::getenv(kLifelineVariable);
  if (!text) return nullptr;
  const int descriptor = std::atoi(text);
  ::unsetenv(kLifelineVariable);  // it is not meant for our own children
  if (descriptor <= STDERR_FILENO || ::fcntl(descriptor, F_SETFD, FD_CLOEXEC) != 0) return nullptr;
  const int wake = ::eventfd(0, EFD_CLOEXEC);
  if (wake < 0) return nullptr;
  return std::unique_ptr<Lifeline>(
      new Lifeline(descriptor, wake, std::move(on_parent_gone), deadline));
}

Lifeline::Lifeline(int descriptor, int wake, std::function<void()> on_parent_gone,
                   std::chrono::milliseconds deadline)
    : descriptor_(descriptor),
      wake_(wake),
      thread_([descriptor, wake, deadline, act = std::move(on_parent_gone)] {
        name_thread("lifeline");
        if (wait_for_end(descriptor, wake) == Ended::kDetached) return;
        exit_after(deadline, 1, "the parent process is gone and the stop took too long");
        act();
      }) {}

Lifeline::~Lifeline() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(wake_, &one, sizeof one);
  // on_parent_gone may itself be what leads here.
  if (thread_.get_id() == std::this_thread::get_id())
    thread_.detach();
  else
    thread_.join();
  ::close(descriptor_);
  ::close(wake_);
}

}  // namespace troupe::actors
