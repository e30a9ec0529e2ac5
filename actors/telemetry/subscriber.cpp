// See subscriber.hpp. ZeroMQ's exceptions are caught here. Owned by one thread.
#include "actors/telemetry/subscriber.hpp"

#include <cstring>
#include <nlohmann/json.hpp>
#include <zmq.hpp>

namespace troupe::actors::telemetry {
namespace {

// Nothing the publisher sends comes near; refused before it is allocated.
constexpr std::int64_t kMaxMessageBytes = std::int64_t{64} << 20;

constexpr const char* kMonitor = "inproc://connection";
constexpr int kHandshakeEvents =
    ZMQ_EVENT_HANDSHAKE_SUCCEEDED | ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL |
    ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL | ZMQ_EVENT_HANDSHAKE_FAILED_AUTH;

// How the next handshake of the monitored socket ended; 0: none did within `timeout`.
int next_handshake(zmq::socket_t& events, std::chrono::milliseconds timeout) {
  zmq::pollitem_t item{events.handle(), 0, ZMQ_POLLIN, 0};
  if (zmq::poll(&item, 1, timeout) == 0) return 0;
  zmq::message_t event, address;
  (void)events.recv(event, zmq::recv_flags::dontwait);
  (void)events.recv(address, zmq::recv_flags::dontwait);
  std::uint16_t kind = 0;
  if (event.size() >= sizeof kind) std::memcpy(&kind, event.data(), sizeof kind);
  return kind;
}

}  // namespace

void SequenceTracker::start(const Snapshot& snapshot) {
  session_ = snapshot.session;
  last_ = snapshot.sequences;
  started_.fill(true);
}

SequenceTracker::Seen SequenceTracker::observe(const Message& message) {
  const std::size_t kind = message.payload.index();
  if (message.session != session_) {
    session_ = message.session;
    started_.fill(false);
  }
  if (!started_[kind]) {
    started_[kind] = true;
    last_[kind] = message.sequence;
    return {};
  }
  if (message.sequence <= last_[kind]) return {.is_new = false};
  const std::uint64_t lost = message.sequence - last_[kind] - 1;
  last_[kind] = message.sequence;
  lost_ += lost;
  return {.lost = lost};
}

struct Subscriber::State {
  zmq::context_t context;
  zmq::socket_t socket{context, zmq::socket_type::sub};
  zmq::socket_t events{context, zmq::socket_type::pair};  // of the socket's handshakes
  std::string endpoint;
  std::shared_ptr<const CurveKeys> curve;
  SequenceTracker tracker;
  std::uint64_t malformed = 0;
  std::uint64_t reported = 0;
};

Subscriber::Subscriber(std::unique_ptr<State> state) : state_(std::move(state)) {}
Subscriber::Subscriber(Subscriber&&) noexcept = default;
Subscriber& Subscriber::operator=(Subscriber&&) noexcept = default;
Subscriber::~Subscriber() = default;

Result<Subscriber> Subscriber::open(const std::string& endpoint, int high_water_mark,
                                    std::shared_ptr<const CurveKeys> curve) {
  try {
    auto state = std::make_unique<State>();
    state->socket.set(zmq::sockopt::linger, 0);
    state->socket.set(zmq::sockopt::rcvhwm, high_water_mark);
    state->socket.set(zmq::sockopt::maxmsgsize, kMaxMessageBytes);
    state->socket.set(zmq::sockopt::subscribe, "");
    state->endpoint = endpoint;
    state->curve = std::move(curve);
    if (state->curve) connect_curve(state->socket, *state->curve);
    ::zmq_socket_monitor(state->socket.handle(), kMonitor, kHandshakeEvents);
    state->events.set(zmq::sockopt::linger, 0);
    state->events.connect(kMonitor);
    state->socket.connect(endpoint);
    return Subscriber(std::move(state));
  } catch (const zmq::error_t& error) {
    return fail(ErrorCode::kInvalidArgument,
                "'" + endpoint + "' is not an address that can be watched (" + error.what() +
                    "): it looks like tcp://127.0.0.1:5555");
  }
}

Result<void> Subscriber::await_connection(std::chrono::milliseconds timeout) {
  int how = 0;
  try {
    how = next_handshake(state_->events, timeout);
  } catch (const zmq::error_t&) {  // a signal interrupted the wait
  }
  if (how == ZMQ_EVENT_HANDSHAKE_SUCCEEDED) return {};
  if (how == 0) return fail(ErrorCode::kTimeout, "nothing answers at " + state_->endpoint);
  if (!state_->curve)
    return fail(ErrorCode::kInvalidArgument,
                state_->endpoint +
                    " lets in only who has a key of its cluster, or is no run of Troupe: give "
                    "--certificates DIR, the folder of this host's certificate");
  if (how == ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL)
    return fail(ErrorCode::kInvalidArgument,
                state_->endpoint + " is not encrypted; watch it without --certificates");
  // The other side hung up without a word.
  return fail(ErrorCode::kInvalidArgument,
              state_->endpoint +
                  " belongs to another cluster than this host's certificate, or is not encrypted: "
                  "then watch it without --certificates");
}

std::optional<Subscriber::Received> Subscriber::receive(std::chrono::milliseconds timeout) {
  try {
    while (true) {
      zmq::pollitem_t item{state_->socket.handle(), 0, ZMQ_POLLIN, 0};
      if (zmq::poll(&item, 1, timeout) == 0) return std::nullopt;
      zmq::message_t topic, body;
      (void)state_->socket.recv(topic, zmq::recv_flags::dontwait);
      if (!topic.more()) {
        ++state_->malformed;
        continue;
      }
      (void)state_->socket.recv(body, zmq::recv_flags::dontwait);
      for (zmq::message_t rest; state_->socket.get(zmq::sockopt::rcvmore);) {
        (void)state_->socket.recv(rest, zmq::recv_flags::dontwait);
      }
      Received received{body.to_string(), decode(body.to_string_view())};
      if (!received.message) {
        ++state_->malformed;
        return received;
      }
      if (state_->tracker.observe(*received.message).is_new) return received;
    }
  } catch (const zmq::error_t&) {  // a signal interrupted the wait
    return std::nullopt;
  }
}

Result<Snapshot> Subscriber::snapshot(const std::string& snapshot_endpoint,
                                      std::chrono::milliseconds timeout) {
  try {
    // A REQ socket is spent once its answer fails to come, so each question has its own.
    zmq::socket_t socket(state_->context, zmq::socket_type::req);
    socket.set(zmq::sockopt::linger, 0);
    socket.set(zmq::sockopt::maxmsgsize, kMaxMessageBytes);
    if (state_->curve) connect_curve(socket, *state_->curve);
    socket.connect(snapshot_endpoint);
    const nlohmann::json request = {{"v", kProtocolVersion},
                                    {"request", "snapshot"},
                                    {"lost", state_->tracker.lost() - state_->reported}};
    socket.send(zmq::buffer(request.dump()), zmq::send_flags::none);
    zmq::pollitem_t item{socket.handle(), 0, ZMQ_POLLIN, 0};
    zmq::message_t answer;
    if (zmq::poll(&item, 1, timeout) == 0 || !socket.recv(answer, zmq::recv_flags::dontwait)) {
      return fail(ErrorCode::kTimeout, "the run at " + snapshot_endpoint + " does not answer");
    }
    state_->reported = state_->tracker.lost();
    auto snapshot = decode_snapshot(answer.to_string_view());
    if (snapshot) state_->tracker.start(*snapshot);
    return snapshot;
  } catch (const zmq::error_t& error) {
    return fail(ErrorCode::kUnavailable,
                "the run at " + snapshot_endpoint + " cannot be asked: " + error.what());
  }
}

std::uint64_t Subscriber::lost() const { return state_->tracker.lost(); }
std::uint64_t Subscriber::malformed() const { return state_->malformed; }

}  // namespace troupe::actors::telemetry
