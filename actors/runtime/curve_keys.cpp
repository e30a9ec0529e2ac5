// See curve_keys.hpp. The ZAP handler has no state: a socket's ZAP domain lists the keys that may
// come in.
#include "actors/runtime/curve_keys.hpp"

#include <array>
#include <mutex>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <utility>
#include <zmq.hpp>

#include "actors/runtime/certificates.hpp"
#include "actors/runtime/secret_files.hpp"

namespace troupe::actors {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kKeyText = 40;
constexpr const char* kZapAddress = "inproc://zeromq.zap.01";

std::string public_of(const std::string& secret) {
  std::array<char, kKeyText + 1> text{};
  if (secret.size() != kKeyText || ::zmq_curve_public(text.data(), secret.c_str()) != 0) return {};
  return text.data();
}

bool is_key(const std::string& text) {
  std::array<std::uint8_t, 32> bytes{};
  return text.size() == kKeyText && ::zmq_z85_decode(bytes.data(), text.c_str()) != nullptr;
}

std::string word_after(const std::string& text, const std::string& name) {
  std::istringstream stream(text);
  for (std::string word, value; stream >> word >> value;)
    if (word == name) return value;
  return {};
}

// Whether one of the keys in the socket's domain is the client's.
bool may_enter(std::string_view domain, const zmq::message_t& key) {
  if (key.size() != 32) return false;
  std::array<char, kKeyText + 1> text{};
  ::zmq_z85_encode(text.data(), key.data<std::uint8_t>(), key.size());
  for (std::size_t at = 0; at + kKeyText <= domain.size(); at += kKeyText + 1)
    if (domain.substr(at, kKeyText) == text.data()) return true;
  return false;
}

// One request of RFC 27: version, id, domain, address, identity, mechanism, credentials.
void answer(zmq::socket_t& handler) {
  std::vector<zmq::message_t> frames;
  do {
    frames.emplace_back();
    (void)handler.recv(frames.back());
  } while (frames.back().more());
  if (frames.size() < 2) return;
  const bool allowed = frames.size() == 7 && frames[5].to_string_view() == "CURVE" &&
                       may_enter(frames[2].to_string_view(), frames[6]);
  const std::string_view status = allowed ? "200" : "400";
  handler.send(zmq::str_buffer("1.0"), zmq::send_flags::sndmore);
  handler.send(frames[1], zmq::send_flags::sndmore);
  handler.send(zmq::buffer(status), zmq::send_flags::sndmore);
  handler.send(zmq::str_buffer(""), zmq::send_flags::sndmore);
  handler.send(zmq::str_buffer(""), zmq::send_flags::sndmore);
  handler.send(zmq::str_buffer(""), zmq::send_flags::none);
}

// Until the context ends. Where a handler is there already, it serves this socket too.
void start_zap(zmq::context_t& context) {
  auto handler = std::make_shared<zmq::socket_t>(context, zmq::socket_type::rep);
  handler->set(zmq::sockopt::linger, 0);
  try {
    handler->bind(kZapAddress);
  } catch (const zmq::error_t& error) {
    if (error.num() == EADDRINUSE) return;
    throw;
  }
  std::thread([handler] {
    for (;;) {
      try {
        answer(*handler);
      } catch (const zmq::error_t& error) {
        if (error.num() == ETERM) return handler->close();
      }
    }
  }).detach();
}

struct ProcessKeys {
  std::mutex mutex;
  std::shared_ptr<const CurveKeys> keys;
};

ProcessKeys& process_keys() {
  static auto* const keys = new ProcessKeys;
  return *keys;
}

}  // namespace

CurvePair new_curve_pair() {
  std::array<char, kKeyText + 1> open{}, secret{};
  if (::zmq_curve_keypair(open.data(), secret.data()) != 0)
    throw std::runtime_error("this ZeroMQ was built without CURVE");
  return {open.data(), secret.data()};
}

Result<CurveKeys> load_curve_keys(const fs::path& bundle) {
  const auto secret = read_secret(bundle / kCurveKey);
  if (!secret) return tl::unexpected(secret.error());
  const auto known = read_public(bundle / kCurvePublicFile);
  if (!known) return tl::unexpected(known.error());
  CurveKeys keys;
  keys.own.secret_key = secret->substr(0, secret->find_last_not_of(" \r\n") + 1);
  keys.own.public_key = public_of(keys.own.secret_key);
  keys.worker = word_after(*known, "worker");
  keys.watch = word_after(*known, "watch");
  if (!is_key(keys.worker) || !is_key(keys.watch))
    return fail(ErrorCode::kCorrupt, (bundle / kCurvePublicFile).string() +
                                         " does not hold the keys of workers and watchers");
  if (keys.own.public_key != keys.worker && keys.own.public_key != keys.watch)
    return fail(ErrorCode::kCorrupt, (bundle / kCurveKey).string() +
                                         " belongs to another cluster than " + kCurvePublicFile +
                                         " beside it");
  return keys;
}

void set_process_curve_keys(std::shared_ptr<const CurveKeys> keys) {
  const std::lock_guard lock(process_keys().mutex);
  process_keys().keys = std::move(keys);
}

std::shared_ptr<const CurveKeys> process_curve_keys() {
  const std::lock_guard lock(process_keys().mutex);
  return process_keys().keys;
}

void accept_curve(zmq::context_t& context, zmq::socket_t& socket, const CurveKeys& keys,
                  CurveClients clients) {
  start_zap(context);
  socket.set(zmq::sockopt::curve_server, true);
  socket.set(zmq::sockopt::curve_secretkey, keys.own.secret_key);
  socket.set(zmq::sockopt::zap_domain,
             clients == CurveClients::kWorkers ? keys.worker : keys.worker + " " + keys.watch);
  socket.set(zmq::sockopt::handshake_ivl, static_cast<int>(kHandshakeLimit.count()));
}

void connect_curve(zmq::socket_t& socket, const CurveKeys& keys) {
  socket.set(zmq::sockopt::curve_serverkey, keys.worker);
  socket.set(zmq::sockopt::curve_publickey, keys.own.public_key);
  socket.set(zmq::sockopt::curve_secretkey, keys.own.secret_key);
  socket.set(zmq::sockopt::handshake_ivl, static_cast<int>(kHandshakeLimit.count()));
}

}  // namespace troupe::actors
