// CURVE for ZeroMQ: who may speak to whom where other hosts can reach a socket. Server and client
// know each other's keys before the first byte; strangers are dropped during the handshake, within
// kHandshakeLimit, and their messages allocate nothing. Any thread.
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "envs/spec/result.hpp"

namespace zmq {
class context_t;
class socket_t;
}  // namespace zmq

namespace troupe::actors {

// Keys are Z85 text of 40 characters.
struct CurvePair {
  std::string public_key, secret_key;
};
CurvePair new_curve_pair();

struct CurveKeys {
  CurvePair own;
  std::string worker;  // public: whose servers to trust, and who may open data channels
  std::string watch;   // public: who else may open telemetry
};

// From a bundle's folder (certificates.hpp). Errors name the file; kInvalidArgument for a secret
// that others may read.
Result<CurveKeys> load_curve_keys(const std::filesystem::path& bundle);

// What this process uses for every channel that other hosts can reach, from now on; null: plain
// text. Set it before the first channel is opened.
void set_process_curve_keys(std::shared_ptr<const CurveKeys> keys);
std::shared_ptr<const CurveKeys> process_curve_keys();

inline constexpr std::chrono::milliseconds kHandshakeLimit{3000};

enum class CurveClients { kWorkers, kWorkersAndWatchers };

// Before bind(). Only the keys of `clients` get in; the context must be the socket's own and gets a
// thread that decides (ZeroMQ's ZAP), which ends with the context. Throws zmq::error_t.
void accept_curve(zmq::context_t& context, zmq::socket_t& socket, const CurveKeys& keys,
                  CurveClients clients);
// Before connect(): the server must hold the workers' key. Throws zmq::error_t.
void connect_curve(zmq::socket_t& socket, const CurveKeys& keys);

}  // namespace troupe::actors
