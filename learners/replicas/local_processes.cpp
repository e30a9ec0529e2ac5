// Implements children, pipes and the parent's answers. A frame is its size and its bytes.
#include "learners/replicas/local_processes.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <mutex>
#include <system_error>
#include <thread>

namespace troupe::learners {
namespace {

using Bytes = std::vector<std::uint8_t>;
using Deadline = std::chrono::steady_clock::time_point;

constexpr std::uint32_t kLargestFrame = 32 << 20;

// False: the other end is closed, or the deadline passed. Descriptors do not block: a pipe with
// room for a byte is ready, and a write of more would wait for the reader whatever the deadline.
bool move_all(int descriptor, std::span<std::uint8_t> bytes, bool reading, Deadline deadline) {
  while (!bytes.empty()) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    pollfd poll{descriptor, static_cast<short>(reading ? POLLIN : POLLOUT), 0};
    const int ready = left.count() < 0 ? 0 : ::poll(&poll, 1, static_cast<int>(left.count()));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return false;
    const ssize_t moved = reading ? ::read(descriptor, bytes.data(), bytes.size())
                                  : ::write(descriptor, bytes.data(), bytes.size());
    if (moved < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (moved <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(moved));
  }
  return true;
}

bool write_frame(int descriptor, std::span<const std::uint8_t> payload, Deadline deadline) {
  auto size = static_cast<std::uint32_t>(payload.size());
  return move_all(descriptor, {reinterpret_cast<std::uint8_t*>(&size), sizeof(size)}, false,
                  deadline) &&
         move_all(descriptor, {const_cast<std::uint8_t*>(payload.data()), payload.size()}, false,
                  deadline);
}

bool read_frame(int descriptor, Bytes& payload, Deadline deadline) {
  std::uint32_t size = 0;
  if (!move_all(descriptor, {reinterpret_cast<std::uint8_t*>(&size), sizeof(size)}, true,
                deadline) ||
      size > kLargestFrame)
    return false;
  payload.resize(size);
  return move_all(descriptor, payload, true, deadline);
}

class PipeLink final : public RequestLink {
 public:
  PipeLink(int requests, int answers) : requests_(requests), answers_(answers) {}
  ~PipeLink() override {
    ::close(requests_);
    ::close(answers_);
  }
  Result<Bytes> ask(std::span<const std::uint8_t> request,
                    std::chrono::milliseconds timeout) override {
    const std::lock_guard lock(mutex_);
    const Deadline deadline = std::chrono::steady_clock::now() + timeout;
    Bytes answer;
    // After a failure an answer that comes late would be taken for that of the next request.
    broken_ = broken_ || request.size() > kLargestFrame ||
              !write_frame(requests_, request, deadline) || !read_frame(answers_, answer, deadline);
    if (broken_) return fail(ErrorCode::kUnavailable, "The parent process does not answer.");
    return answer;
  }

 private:
  std::mutex mutex_;
  bool broken_ = false;
  int requests_, answers_;
};

// What the parent holds of one child.
struct Ends {
  int requests = -1, answers = -1;
};

std::array<int, 2> make_pipe() {
  std::array<int, 2> ends;
  if (::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0)
    throw std::system_error(errno, std::generic_category(), "pipe");
  return ends;
}

}  // namespace

bool LocalProcess::clean() const { return WIFEXITED(status) && WEXITSTATUS(status) == 0; }
bool LocalProcess::killed_by(int signal) const {
  return WIFSIGNALED(status) && WTERMSIG(status) == signal;
}
void LocalProcess::wait() {
  if (id < 0 || status >= 0) return;
  while (::waitpid(id, &status, 0) < 0 && errno == EINTR) {
  }
}

std::vector<LocalProcess> run_local_processes(
    int count, const std::function<int(int, std::shared_ptr<RequestLink>)>& work,
    const LocalProcessOptions& options) {
  const auto table = std::make_shared<RendezvousTable>();
  const auto answer =
      options.answer ? options.answer : [table](std::span<const std::uint8_t> request) {
        return table->handle(request);
      };
  std::fflush(nullptr);  // what is buffered would be written by every child
  std::vector<LocalProcess> children;
  std::vector<Ends> ends;
  for (int i = 0; i < count; ++i) {
    const std::array<int, 2> requests = make_pipe(), answers = make_pipe();
    const pid_t id = ::fork();
    if (id < 0) throw std::system_error(errno, std::generic_category(), "fork");
    if (id == 0) {
      for (const Ends& other : ends) {
        ::close(other.requests);
        ::close(other.answers);
      }
      ::close(requests[0]);
      ::close(answers[1]);
      std::signal(SIGPIPE, SIG_IGN);
      int code = 1;
      try {
        code = work(i, std::make_shared<PipeLink>(requests[1], answers[0]));
      } catch (const std::exception& error) {
        std::fprintf(stderr, "process %d: %s\n", i, error.what());
      }
      std::fflush(nullptr);
      ::_exit(code);  // without the parent's destructors
    }
    ::close(requests[1]);
    ::close(answers[0]);
    ends.push_back({requests[0], answers[1]});
    children.push_back({id});
  }
  std::vector<std::jthread> servers;
  for (const Ends& own : ends)
    servers.emplace_back([&answer, own] {
      sigset_t broken_pipe;  // of this thread: a child that died is no reason to end
      sigemptyset(&broken_pipe);
      sigaddset(&broken_pipe, SIGPIPE);
      pthread_sigmask(SIG_BLOCK, &broken_pipe, nullptr);
      const Deadline never = std::chrono::steady_clock::now() + std::chrono::hours(240);
      Bytes request;
      while (read_frame(own.requests, request, never) &&
             write_frame(own.answers, answer(request), never)) {
      }
      ::close(own.requests);
      ::close(own.answers);
    });
  if (options.meanwhile) options.meanwhile(children);
  for (LocalProcess& child : children) child.wait();
  return children;
}

}  // namespace troupe::learners
