// The run's voice: a ZeroMQ PUB socket for messages and a ROUTER socket that answers late joiners
// with the present state. Owned by the telemetry hub; used by one thread at a time. Nothing here
// ever blocks: a subscriber that does not keep up loses messages and sees it by their sequence
// numbers.
//
// A snapshot request is {"v": 1, "request": "snapshot", "lost": N}, where N is how many messages
// the asker has lost since its last request; the answer is described at Snapshot in protocol.hpp.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "actors/runtime/curve_keys.hpp"
#include "actors/telemetry/protocol.hpp"
#include "envs/spec/result.hpp"

namespace troupe::actors::telemetry {

struct PublisherOptions {
  std::string run{};
  std::string endpoint = "tcp://127.0.0.1:*";  // tcp with * as port takes a free one; ipc works too
  std::string snapshot_endpoint{};             // empty: any free port, or path, beside `endpoint`
  // On addresses other than loopback: only workers and watchers of the cluster get in.
  std::shared_ptr<const CurveKeys> curve{};
  bool insecure = false;       // allow such addresses without keys, readable by anyone who connects
  int high_water_mark = 1000;  // messages queued per subscriber
  std::size_t events = 50, episodes = 200, evaluations = 2000;  // kept for snapshots
  std::chrono::milliseconds linger{
      500};  // how long the destructor waits for the last message to leave
};

// Memory: subscribers x high_water_mark messages, and what is kept for snapshots.
class Publisher {
 public:
  // kUnavailable: the address is in use. kInvalidArgument: not a ZeroMQ address, or one that other
  // hosts can reach without options.curve or options.insecure.
  static Result<Publisher> open(PublisherOptions options);
  Publisher(Publisher&&) noexcept;
  Publisher& operator=(Publisher&&) noexcept;
  ~Publisher();

  // Stamps run, session, sequence, (if 0) time, and the endpoints of a status, then sends.
  void publish(Message message);
  // Into the snapshots only: history of earlier sessions of the run, oldest first.
  void remember(Message message);
  // Leaves a node that is gone out of later snapshots.
  void forget(const std::string& node);
  // Answers what was asked since the last call, at most 64 requests; call it a few times a second.
  void serve_snapshots();

  const std::string& endpoint() const;           // with the real port
  const std::string& snapshot_endpoint() const;  // likewise
  std::uint64_t session() const;

  struct Counts {
    std::uint64_t published = 0;
    std::uint64_t unsent = 0;         // the socket refused them altogether
    std::uint64_t congested = 0;      // times a subscriber's queue was found newly full
    std::uint64_t reported_lost = 0;  // messages that subscribers say they missed
    std::uint64_t snapshots = 0;
    std::uint64_t bad_requests = 0;  // malformed, or the asker was gone
  };
  const Counts& counts() const;

 private:
  struct State;
  explicit Publisher(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace troupe::actors::telemetry
