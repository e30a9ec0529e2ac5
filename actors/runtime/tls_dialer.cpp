// See tls_dialer.hpp.
#include "actors/runtime/tls_dialer.hpp"

#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <cstring>
#include <mutex>
#include <optional>

#include "actors/runtime/relay_loop.hpp"
#include "actors/runtime/relay_pipe.hpp"

namespace troupe::actors {
namespace {

using Time = RelayConnection::Time;

// Connects, shakes hands and reads the relay's answer, step by step on a non-blocking socket.
class Dialling {
 public:
  explicit Dialling(const TlsDialerOptions& options) : options_(options) {}

  // True: finished, see result(). False: wait for events() of socket().
  bool advance() {
    if (!socket_ && !start()) return true;
    if (!session_ && !connected()) return over_;
    if (!shaken_ && !shake_hands()) return over_;
    return read_answer();
  }
  void expire() {
    stop(ErrorCode::kTimeout, !session_  ? "it does not answer"
                              : !shaken_ ? "it does not finish the handshake"
                                         : "it says nothing after the handshake");
  }

  const Result<void>& result() const { return result_; }
  const Socket& socket() const { return socket_; }
  TlsSession& session() { return *session_; }
  std::uint32_t events() const { return events_; }

 private:
  bool start() {
    auto started = start_connect(options_.host, options_.port);
    if (!started) {
      result_ = tl::unexpected(started.error());
      over_ = true;
      return false;
    }
    socket_ = std::move(*started);
    events_ = EPOLLOUT;
    return true;
  }

  bool connected() {
    const int error = connect_result(socket_);
    if (error != 0) return stop(ErrorCode::kUnavailable, std::strerror(error));
    sockaddr_storage peer{};
    socklen_t size = sizeof peer;
    if (::getpeername(socket_.get(), reinterpret_cast<sockaddr*>(&peer), &size) != 0) return false;
    session_.emplace(TlsSession::client(options_.credentials, socket_.get(), options_.host));
    return true;
  }

  bool shake_hands() {
    if (!stepped(session_->handshake())) return false;
    if (!session_->peer().has_role(kCoordinatorRole))
      return stop(ErrorCode::kInvalidArgument,
                  "its certificate, of " + session_->peer().name +
                      ", lacks the role coordinator, so it may not lead this host");
    shaken_ = true;
    return true;
  }

  bool read_answer() {
    while (answer_.empty() || answer_.size() <= static_cast<unsigned char>(answer_[0])) {
      std::uint8_t byte = 0;
      std::size_t got = 0;
      if (!stepped(session_->read({&byte, 1}, got))) return over_;
      answer_ += static_cast<char>(byte);
      if (byte == 0 && answer_.size() == 1) break;
    }
    over_ = true;
    const bool ours = answer_.find("certificate") != std::string::npos;
    if (answer_.size() > 1)
      stop(ours ? ErrorCode::kInvalidArgument : ErrorCode::kUnavailable,
           "it refuses this host: " + answer_.substr(1));
    return true;
  }

  // Whether the step is done; if not, either it waits or all is over.
  bool stepped(TlsSession::Step step) {
    events_ = step == TlsSession::Step::kWantWrite ? EPOLLOUT : EPOLLIN;
    if (step == TlsSession::Step::kClosed)
      return stop(ErrorCode::kUnavailable, "it hung up after the handshake");
    if (step == TlsSession::Step::kFailed)
      return stop(ErrorCode::kInvalidArgument, session_->error());
    return step == TlsSession::Step::kDone;
  }

  bool stop(ErrorCode code, const std::string& why) {
    over_ = true;
    result_ = fail(
        code, options_.host + ":" + std::to_string(options_.port) + " cannot be joined: " + why);
    return false;
  }

  const TlsDialerOptions& options_;
  Socket socket_;
  std::optional<TlsSession> session_;
  bool shaken_ = false, over_ = false;
  std::uint32_t events_ = 0;
  std::string answer_;
  Result<void> result_;
};

}  // namespace

struct TlsDialer::State {
  explicit State(TlsDialerOptions given) : options(std::move(given)) {}
  void ended(const std::string& error) {
    if (!error.empty()) options.warn(error);
    const std::lock_guard lock(mutex);
    last_error = error;
  }
  const TlsDialerOptions options;
  mutable std::mutex mutex;
  std::string last_error;  // guarded
  std::unique_ptr<RelayLoop> loop;
};

namespace {

class Outbound final : public RelayConnection {
 public:
  Outbound(TlsDialer::State& state, Socket plain)
      : state_(state),
        plain_(std::move(plain)),
        dialling_(state.options),
        deadline_(std::chrono::steady_clock::now() + state.options.patience) {}

  ~Outbound() override {
    if (pipe_) dialling_.session().close();
  }

  bool advance(bool broken, Time) override {
    if (!pipe_) {
      if (!dialling_.advance()) return !broken;
      if (!dialling_.result()) {
        state_.ended(dialling_.result().error().message);
        return false;
      }
      state_.ended({});
      pipe_.emplace(FrameRules{.to_server = false, .most_payload = state_.options.most_payload});
      deadline_ = Time::max();
    }
    if (pipe_->move(dialling_.session(), plain_, broken)) return true;
    if (!pipe_->fault().empty())
      state_.ended("the connection to " + state_.options.host + " was closed: " + pipe_->fault());
    return false;
  }

  std::vector<Watched> watched() const override {
    if (!pipe_) return {{&dialling_.socket(), dialling_.events()}, {&plain_, 0}};
    return {{&dialling_.socket(), pipe_->session_events()}, {&plain_, pipe_->plain_events()}};
  }

  Time deadline() const override { return deadline_; }
  void expire() override {
    dialling_.expire();
    state_.ended(dialling_.result().error().message);
  }

 private:
  TlsDialer::State& state_;
  Socket plain_;
  Dialling dialling_;
  Time deadline_;
  std::optional<RelayPipe> pipe_;
};

}  // namespace

TlsDialer::TlsDialer(std::unique_ptr<State> state) : state_(std::move(state)) {}

TlsDialer::~TlsDialer() { state_->loop.reset(); }

Result<std::unique_ptr<TlsDialer>> TlsDialer::open(TlsDialerOptions options) {
  auto listener = listen_at("127.0.0.1", 0);
  if (!listener) return tl::unexpected(listener.error());
  auto state = std::make_unique<State>(std::move(options));
  State* raw = state.get();
  state->loop = std::make_unique<RelayLoop>(
      std::move(*listener), "tls dialer",
      [raw](RelayLoop::Id, Socket socket,
            const sockaddr_storage&) -> std::unique_ptr<RelayConnection> {
        const std::int64_t owner = owner_of_peer(socket);
        if (owner == static_cast<std::int64_t>(::geteuid()))
          return std::make_unique<Outbound>(*raw, std::move(socket));
        raw->options.warn("refused a connection of user " + std::to_string(owner) +
                          " of this host to the run");
        return nullptr;
      });
  if (auto started = state->loop->start(); !started) return tl::unexpected(started.error());
  return std::unique_ptr<TlsDialer>(new TlsDialer(std::move(state)));
}

std::uint16_t TlsDialer::port() const { return state_->loop->port(); }

std::string TlsDialer::last_error() const {
  const std::lock_guard lock(state_->mutex);
  return state_->last_error;
}

Result<void> probe_relay(const TlsDialerOptions& options) {
  Dialling dialling(options);
  const auto deadline = std::chrono::steady_clock::now() + options.patience;
  while (!dialling.advance()) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    pollfd item{dialling.socket().get(),
                static_cast<short>(dialling.events() == EPOLLOUT ? POLLOUT : POLLIN), 0};
    if (left.count() <= 0 || ::poll(&item, 1, static_cast<int>(left.count())) == 0) {
      dialling.expire();
      break;
    }
  }
  return dialling.result();
}

}  // namespace troupe::actors
