// See publisher.hpp. ZeroMQ's exceptions are caught here. Used by one thread at a time.
#include "actors/telemetry/publisher.hpp"

#include <chrono>
#include <deque>
#include <map>
#include <nlohmann/json.hpp>
#include <zmq.hpp>

#include "actors/runtime/addresses.hpp"

namespace troupe::actors::telemetry {
namespace {

constexpr int kMaxRequestBytes = 4096;
constexpr int kRequestsPerCall = 64;
// A peer that vanished without closing is noticed by TCP: idle seconds, then probes as far apart.
// Not by ZeroMQ's heartbeats: they would drop a subscriber that is merely stopped, and libzmq 4.3.4
// aborts in a peer whose connection breaks while its queue is full and an answer to a heartbeat is
// due.
constexpr int kKeepaliveIdle = 30, kKeepaliveInterval = 10, kKeepaliveProbes = 3;

// The free neighbour of a bound endpoint: same host with any port, or the same path with a suffix.
std::string beside(const std::string& endpoint) {
  if (endpoint.starts_with("tcp://")) return endpoint.substr(0, endpoint.rfind(':')) + ":*";
  return endpoint + ".snapshot";
}

Result<std::string> bind_socket(zmq::socket_t& socket, const std::string& endpoint) {
  try {
    socket.bind(endpoint);
    return socket.get(zmq::sockopt::last_endpoint);
  } catch (const zmq::error_t& error) {
    const bool taken = error.num() == EADDRINUSE;
    return fail(taken ? ErrorCode::kUnavailable : ErrorCode::kInvalidArgument,
                "telemetry.endpoint '" + endpoint + "' cannot be used: " +
                    (taken ? "the address is already in use by another process" : error.what()));
  }
}

void keep(std::deque<std::string>& history, std::string text, std::size_t limit) {
  history.push_back(std::move(text));
  while (history.size() > limit) history.pop_front();
}

std::string join(const std::deque<std::string>& items) {
  std::string list = "[";
  for (const std::string& item : items) list += (list.size() > 1 ? "," : "") + item;
  return list + "]";
}

}  // namespace

struct Publisher::State {
  explicit State(PublisherOptions given)
      : options(std::move(given)),
        publish(context, zmq::socket_type::pub),
        snapshot(context, zmq::socket_type::router) {
    publish.set(zmq::sockopt::sndhwm, options.high_water_mark);
    publish.set(zmq::sockopt::linger, static_cast<int>(options.linger.count()));
    snapshot.set(zmq::sockopt::linger, 0);
    // A snapshot can be large, and one asker has one question at a time.
    snapshot.set(zmq::sockopt::sndhwm, 4);
    snapshot.set(zmq::sockopt::rcvhwm, 16);
    for (zmq::socket_t* socket : {&publish, &snapshot}) {
      // What comes in is requests, and subscriptions.
      socket->set(zmq::sockopt::maxmsgsize, std::int64_t{kMaxRequestBytes});
      socket->set(zmq::sockopt::handshake_ivl, static_cast<int>(kHandshakeLimit.count()));
      socket->set(zmq::sockopt::tcp_keepalive, 1);
      socket->set(zmq::sockopt::tcp_keepalive_idle, kKeepaliveIdle);
      socket->set(zmq::sockopt::tcp_keepalive_intvl, kKeepaliveInterval);
      socket->set(zmq::sockopt::tcp_keepalive_cnt, kKeepaliveProbes);
    }
  }

  Result<std::string> bind(zmq::socket_t& socket, const std::string& address) {
    if (options.curve && !is_loopback(address))
      accept_curve(context, socket, *options.curve, CurveClients::kWorkersAndWatchers);
    return bind_socket(socket, address);
  }

  void stamp(Message& message) {
    message.run = options.run;
    message.session = session;
    if (message.time == 0) message.time = wall_time();
    if (auto* status = std::get_if<RunStatus>(&message.payload)) {
      status->endpoint = endpoint;
      status->snapshot_endpoint = snapshot_endpoint;
    }
  }

  void remember(const Message& message, std::string text) {
    switch (message.kind()) {
      case Kind::kMetrics:
        metrics[message.node] = std::move(text);
        break;
      case Kind::kEvents:
        keep(events, std::move(text), options.events);
        break;
      case Kind::kEpisodes:
        keep(episodes, std::move(text), options.episodes);
        break;
      case Kind::kEvaluations:
        keep(evaluations, std::move(text), options.evaluations);
        break;
      case Kind::kStatus:
        last_status = std::move(text);
        break;
    }
  }

  void send(const std::string& topic, const std::string& text);
  std::string answer() const;
  bool serve_one();

  PublisherOptions options;
  zmq::context_t context;
  zmq::socket_t publish, snapshot;
  std::string endpoint, snapshot_endpoint;
  std::uint64_t session = 0;
  std::array<std::uint64_t, kKinds> sequences{};
  std::map<std::string, std::string> metrics;
  std::deque<std::string> events, episodes, evaluations;
  std::string last_status = "null";
  Counts counts;
};

// XPUB_NODROP turns "somebody's queue is full" into a refused first frame. That is counted, and the
// message is sent without the option, so that only the full queue goes without it.
void Publisher::State::send(const std::string& topic, const std::string& text) {
  constexpr auto kFirst = zmq::send_flags::sndmore | zmq::send_flags::dontwait;
  try {
    publish.set(zmq::sockopt::xpub_nodrop, true);
    const bool room_everywhere = publish.send(zmq::buffer(topic), kFirst).has_value();
    publish.set(zmq::sockopt::xpub_nodrop, false);
    if (!room_everywhere) ++counts.congested;
    const bool started = room_everywhere || publish.send(zmq::buffer(topic), kFirst).has_value();
    const bool sent = started && publish.send(zmq::buffer(text), zmq::send_flags::dontwait);
    if (!sent) ++counts.unsent;
  } catch (const zmq::error_t&) {
    ++counts.unsent;
  }
}

std::string Publisher::State::answer() const {
  nlohmann::json head = {{"v", kProtocolVersion}, {"run", options.run}, {"session", session}};
  for (std::size_t i = 0; i < kKinds; ++i) {
    head["sequences"][std::string(kind_name(static_cast<Kind>(i)))] = sequences[i];
  }
  std::string text = head.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  text.pop_back();
  std::string last;
  for (const auto& [node, message] : metrics) last += (last.empty() ? "" : ",") + message;
  text += ",\"metrics\":[" + last + "],\"events\":" + join(events) +
          ",\"episodes\":" + join(episodes) + ",\"evaluations\":" + join(evaluations) +
          ",\"status\":" + last_status + "}";
  return text;
}

// False when nobody asks. Frames of a REQ socket: its identity, an empty one, the request.
bool Publisher::State::serve_one() {
  std::vector<zmq::message_t> frames;
  do {
    zmq::message_t frame;
    if (!snapshot.recv(frame, zmq::recv_flags::dontwait)) return false;
    if (frames.size() < 4) frames.push_back(std::move(frame));
  } while (snapshot.get(zmq::sockopt::rcvmore));

  const auto request = frames.size() == 3
                           ? nlohmann::json::parse(frames[2].to_string_view(), nullptr, false)
                           : nlohmann::json();
  if (!request.is_object() || request.value("request", nlohmann::json()) != "snapshot") {
    ++counts.bad_requests;
    return true;
  }
  const nlohmann::json lost = request.value("lost", nlohmann::json(0));
  if (lost.is_number_unsigned()) counts.reported_lost += lost.get<std::uint64_t>();
  const bool sent =
      snapshot.send(frames[0], zmq::send_flags::sndmore | zmq::send_flags::dontwait) &&
      snapshot.send(zmq::str_buffer(""), zmq::send_flags::sndmore) &&
      snapshot.send(zmq::buffer(answer()), zmq::send_flags::dontwait);
  ++(sent ? counts.snapshots : counts.bad_requests);
  return true;
}

Publisher::Publisher(std::unique_ptr<State> state) : state_(std::move(state)) {}
Publisher::Publisher(Publisher&&) noexcept = default;
Publisher& Publisher::operator=(Publisher&&) noexcept = default;
Publisher::~Publisher() = default;

Result<Publisher> Publisher::open(PublisherOptions options) {
  for (const std::string& endpoint : {options.endpoint, options.snapshot_endpoint}) {
    if (!options.curve && !options.insecure && !is_loopback(endpoint)) {
      return fail(ErrorCode::kInvalidArgument,
                  "telemetry.endpoint '" + endpoint +
                      "' can be reached from other hosts, and without cluster.certificates it is "
                      "not encrypted: use tcp://127.0.0.1:*");
    }
  }
  try {
    auto state = std::make_unique<State>(std::move(options));
    auto endpoint = state->bind(state->publish, state->options.endpoint);
    if (!endpoint) return tl::unexpected(endpoint.error());
    state->endpoint = *endpoint;
    const std::string& wanted = state->options.snapshot_endpoint;
    auto snapshot = state->bind(state->snapshot, wanted.empty() ? beside(*endpoint) : wanted);
    if (!snapshot) return tl::unexpected(snapshot.error());
    state->snapshot_endpoint = *snapshot;
    state->session = static_cast<std::uint64_t>(wall_time() * 1e6);
    return Publisher(std::move(state));
  } catch (const zmq::error_t& error) {
    return fail(ErrorCode::kIo,
                std::string("telemetry cannot open a ZeroMQ socket: ") + error.what());
  }
}

void Publisher::publish(Message message) {
  state_->stamp(message);
  message.sequence = ++state_->sequences[message.payload.index()];
  ++state_->counts.published;
  std::string text = encode(message);
  state_->send(message.topic(), text);
  state_->remember(message, std::move(text));
}

void Publisher::remember(Message message) {
  state_->stamp(message);
  state_->remember(message, encode(message));
}

void Publisher::forget(const std::string& node) { state_->metrics.erase(node); }

void Publisher::serve_snapshots() {
  try {
    for (int i = 0; i < kRequestsPerCall && state_->serve_one(); ++i) {
    }
  } catch (const zmq::error_t&) {
    ++state_->counts.bad_requests;
  }
}

const std::string& Publisher::endpoint() const { return state_->endpoint; }
const std::string& Publisher::snapshot_endpoint() const { return state_->snapshot_endpoint; }
std::uint64_t Publisher::session() const { return state_->session; }
const Publisher::Counts& Publisher::counts() const { return state_->counts; }

}  // namespace troupe::actors::telemetry
