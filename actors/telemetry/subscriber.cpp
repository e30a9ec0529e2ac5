// See subscriber.hpp. ZeroMQ's exceptions are caught here. Owned by one thread.
#include "actors/telemetry/subscriber.hpp"

#include <nlohmann/json.hpp>
#include <zmq.hpp>

namespace troupe::actors::telemetry {
namespace {

// Nothing the publisher sends comes near; refused before it is allocated.
constexpr std::int64_t kMaxMessageBytes = std::int64_t{64} << 20;

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
  SequenceTracker tracker;
  std::uint64_t malformed = 0;
  std::uint64_t reported = 0;
};

Subscriber::Subscriber(std::unique_ptr<State> state) : state_(std::move(state)) {}
Subscriber::Subscriber(Subscriber&&) noexcept = default;
Subscriber& Subscriber::operator=(Subscriber&&) noexcept = default;
Subscriber::~Subscriber() = default;

Result<Subscriber> Subscriber::open(const std::string& endpoint, int high_water_mark) {
  try {
    auto state = std::make_unique<State>();
    state->socket.set(zmq::sockopt::linger, 0);
    state->socket.set(zmq::sockopt::rcvhwm, high_water_mark);
    state->socket.set(zmq::sockopt::maxmsgsize, kMaxMessageBytes);
    state->socket.set(zmq::sockopt::subscribe, "");
    state->socket.connect(endpoint);
    return Subscriber(std::move(state));
  } catch (const zmq::error_t& error) {
    return fail(ErrorCode::kInvalidArgument,
                "'" + endpoint + "' is not an address that can be watched (" + error.what() +
                    "): it looks like tcp://127.0.0.1:5555");
  }
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
