// See tls_relay.hpp.
#include "actors/runtime/tls_relay.hpp"

#include <sys/epoll.h>

#include <algorithm>
#include <mutex>
#include <optional>

#include "actors/runtime/relay_loop.hpp"
#include "actors/runtime/relay_pipe.hpp"

namespace troupe::actors {
namespace {

using Time = RelayConnection::Time;

constexpr std::chrono::seconds kPatienceWithBackend{3};
constexpr std::size_t kLongestReason = 255;

}  // namespace

struct TlsRelay::State {
  explicit State(TlsRelayOptions given) : options(std::move(given)), lobby(options.lobby) {}

  std::unique_ptr<RelayConnection> accept(RelayLoop::Id id, Socket socket,
                                          const sockaddr_storage& peer);
  void dropped(const std::string& who, const std::string& why) {
    const auto now = std::chrono::steady_clock::now();
    if (auto line = log.dropped(who, why, now)) options.warn(*line);
    const std::lock_guard lock(mutex);
    counts.dropped = log.total();
    counts.dropped_because = log.by_reason();
  }
  void say_summary(Time now) {
    if (auto line = log.summary(now)) options.warn(*line);
  }
  void count_open(const std::string& address, int change) {
    if ((open_per_address[address] += change) == 0) open_per_address.erase(address);
    const std::lock_guard lock(mutex);
    counts.open += static_cast<std::size_t>(change);
    if (change > 0) ++counts.admitted;
  }
  void count_lobby() {
    const std::lock_guard lock(mutex);
    counts.in_handshake = lobby.size();
  }

  TlsRelayOptions options;
  // Of the loop's thread.
  Lobby lobby;
  StrangerLog log;
  std::map<std::string, int> open_per_address;
  mutable std::mutex mutex;
  Counts counts;  // guarded
  std::unique_ptr<RelayLoop> loop;
};

namespace {

using State = TlsRelay::State;

// handshake -> connecting to the backend -> answering -> open.
class Inbound final : public RelayConnection {
 public:
  Inbound(State& state, RelayLoop::Id id, Socket socket, const sockaddr_storage& peer)
      : state_(state),
        id_(id),
        who_(address_of(peer, true)),
        address_(address_of(peer, false)),
        socket_(std::move(socket)),
        session_(TlsSession::server(state.options.credentials, socket_.get())),
        deadline_(std::chrono::steady_clock::now() + state.options.patience) {}

  ~Inbound() override {
    session_.close();
    hang_up(socket_);
    if (phase_ == Phase::kHandshake) leave_lobby();
    if (counted_) state_.count_open(address_, -1);
  }

  bool advance(bool broken, Time now) override {
    if (phase_ == Phase::kHandshake && !shake_hands(broken, now)) return false;
    if (phase_ == Phase::kConnecting && !connect_backend()) return false;
    if (phase_ == Phase::kAnswering && !answer()) return false;
    if (phase_ != Phase::kOpen) return !broken;
    if (pipe_->move(session_, backend_, broken)) return true;
    if (!pipe_->fault().empty()) tell(pipe_->fault());
    return false;
  }

  std::vector<Watched> watched() const override {
    if (phase_ == Phase::kOpen)
      return {{&socket_, pipe_->session_events()}, {&backend_, pipe_->plain_events()}};
    return {{&socket_, phase_ == Phase::kConnecting ? 0U : events_},
            {&backend_, phase_ == Phase::kConnecting ? std::uint32_t{EPOLLOUT} : 0U}};
  }

  Time deadline() const override { return deadline_; }
  void expire() override {
    tell(phase_ == Phase::kHandshake ? "it did not finish the handshake in time"
                                     : "the run behind the relay does not answer");
  }

 private:
  enum class Phase { kHandshake, kConnecting, kAnswering, kOpen };

  bool shake_hands(bool broken, Time now) {
    const TlsSession::Step step = session_.handshake();
    if (waits(step) && !broken) return true;
    if (step != TlsSession::Step::kDone) {
      tell(session_.error().empty() ? "it hung up during the handshake" : session_.error());
      return false;
    }
    leave_lobby();
    deadline_ = now + kPatienceWithBackend;
    name_ = session_.peer().name;
    phase_ = Phase::kAnswering;
    if (auto admitted = admit(); !admitted) return refuse(admitted.error().message);
    auto started = start_connect("127.0.0.1", state_.options.backend);
    if (!started) return refuse("the run behind the relay does not answer");
    backend_ = std::move(*started);
    phase_ = Phase::kConnecting;
    return true;
  }

  Result<void> admit() {
    const CertificateInfo peer = session_.peer();
    const auto& options = state_.options;
    const auto role = std::find_if(options.roles.begin(), options.roles.end(),
                                   [&](const auto& entry) { return peer.has_role(entry.first); });
    if (role == options.roles.end()) {
      std::string wanted;
      for (const auto& [name, types] : options.roles)
        wanted += (wanted.empty() ? "" : " or ") + name;
      return fail(ErrorCode::kInvalidArgument,
                  "the certificate of " + peer.name + " lacks the role " + wanted);
    }
    rules_ = {.to_server = true, .most_payload = options.most_payload, .types = role->second};
    const auto known = state_.open_per_address.find(address_);
    const int open_there = known == state_.open_per_address.end() ? 0 : known->second;
    if (state_.counts.open >= options.most_open ||
        open_there >= static_cast<int>(options.most_open_per_address))
      return fail(ErrorCode::kUnavailable, "too many connections are open");
    counted_ = true;
    state_.count_open(address_, 1);
    return {};
  }

  bool refuse(std::string reason) {
    tell(reason);
    reason.resize(std::min(reason.size(), kLongestReason));
    answer_ = static_cast<char>(reason.size()) + reason;
    refused_ = true;
    phase_ = Phase::kAnswering;
    return true;
  }

  bool connect_backend() {
    const int error = connect_result(backend_);
    if (error != 0) return refuse("the run behind the relay does not answer");
    sockaddr_storage peer{};
    socklen_t size = sizeof peer;
    if (::getpeername(backend_.get(), reinterpret_cast<sockaddr*>(&peer), &size) != 0) return true;
    answer_ = std::string(1, '\0');
    phase_ = Phase::kAnswering;
    return true;
  }

  bool answer() {
    while (!answer_.empty()) {
      std::size_t sent = 0;
      const auto* data = reinterpret_cast<const std::uint8_t*>(answer_.data());
      const TlsSession::Step step = session_.write({data, answer_.size()}, sent);
      if (waits(step)) return true;
      if (step != TlsSession::Step::kDone) return false;
      answer_.erase(0, sent);
    }
    if (refused_) return false;
    pipe_.emplace(rules_);
    phase_ = Phase::kOpen;
    deadline_ = Time::max();
    return true;
  }

  bool waits(TlsSession::Step step) {
    events_ = step == TlsSession::Step::kWantWrite ? EPOLLOUT : EPOLLIN;
    return step == TlsSession::Step::kWantRead || step == TlsSession::Step::kWantWrite;
  }

  void leave_lobby() {
    state_.lobby.leave(id_);
    state_.count_lobby();
  }

  void tell(const std::string& why) {
    state_.dropped(name_.empty() ? who_ : name_ + " at " + who_, why);
  }

  State& state_;
  const RelayLoop::Id id_;
  const std::string who_, address_;
  std::string name_;  // of the certificate
  Socket socket_, backend_;
  TlsSession session_;
  Time deadline_;
  Phase phase_ = Phase::kHandshake;
  std::uint32_t events_ = EPOLLIN;
  bool counted_ = false, refused_ = false;
  std::string answer_;
  FrameRules rules_;
  std::optional<RelayPipe> pipe_;
};

}  // namespace

std::unique_ptr<RelayConnection> TlsRelay::State::accept(RelayLoop::Id id, Socket socket,
                                                         const sockaddr_storage& peer) {
  if (const auto leaves = lobby.enter(id, address_of(peer, false))) {
    loop->drop(leaves->id);
    dropped(leaves->address, "others knock, and it was the slowest with its handshake");
  }
  {
    const std::lock_guard lock(mutex);
    ++counts.accepted;
    counts.in_handshake = lobby.size();
  }
  return std::make_unique<Inbound>(*this, id, std::move(socket), peer);
}

TlsRelay::TlsRelay(std::unique_ptr<State> state) : state_(std::move(state)) {}

TlsRelay::~TlsRelay() {
  state_->loop.reset();
  state_->say_summary(std::chrono::steady_clock::now() + StrangerLog::kWindow);
}

Result<std::unique_ptr<TlsRelay>> TlsRelay::open(TlsRelayOptions options) {
  if (!options.credentials->own().has_role(kCoordinatorRole))
    return fail(ErrorCode::kInvalidArgument,
                "the certificate of " + options.credentials->own().name +
                    " lacks the role coordinator, so others would not join here");
  auto listener = listen_at(options.host, options.port);
  if (!listener) return tl::unexpected(listener.error());
  auto state = std::make_unique<State>(std::move(options));
  State* raw = state.get();
  state->loop = std::make_unique<RelayLoop>(
      std::move(*listener), "tls relay",
      [raw](RelayLoop::Id id, Socket socket, const sockaddr_storage& peer) {
        return raw->accept(id, std::move(socket), peer);
      },
      [raw] { raw->say_summary(std::chrono::steady_clock::now()); });
  if (auto started = state->loop->start(); !started) return tl::unexpected(started.error());
  return std::unique_ptr<TlsRelay>(new TlsRelay(std::move(state)));
}

std::uint16_t TlsRelay::port() const { return state_->loop->port(); }

TlsRelay::Counts TlsRelay::counts() const {
  const std::lock_guard lock(state_->mutex);
  return state_->counts;
}

}  // namespace troupe::actors
