// The listening side: joins a publisher, starts from its snapshot, and counts exactly what it
// missed. Used by `troupe watch`; owned by one thread.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "actors/runtime/curve_keys.hpp"
#include "actors/telemetry/protocol.hpp"
#include "envs/spec/result.hpp"

namespace troupe::actors::telemetry {

// Counts jumps in the sequence numbers of each kind. A pure class.
class SequenceTracker {
 public:
  // Starts from a snapshot: what it holds is not missing, whatever came before.
  void start(const Snapshot& snapshot);
  struct Seen {
    bool is_new = true;      // false: already contained in the snapshot, or a repetition
    std::uint64_t lost = 0;  // messages skipped just before this one
  };
  Seen observe(const Message& message);
  std::uint64_t lost() const { return lost_; }

 private:
  std::uint64_t session_ = 0;
  std::array<std::uint64_t, kKinds> last_{};
  std::array<bool, kKinds> started_{};  // without a snapshot, the first message seen is the start
  std::uint64_t lost_ = 0;
};

class Subscriber {
 public:
  // Connects in the background; a publisher that is not there is no error. kInvalidArgument: not an
  // address. `high_water_mark`: messages that may wait here before the publisher's queue fills.
  // `curve`: keys of a bundle, for a run that other hosts can reach.
  static Result<Subscriber> open(const std::string& endpoint, int high_water_mark = 1000,
                                 std::shared_ptr<const CurveKeys> curve = nullptr);
  Subscriber(Subscriber&&) noexcept;
  Subscriber& operator=(Subscriber&&) noexcept;
  ~Subscriber();

  // Waits until the publisher has let it in. kInvalidArgument: it refuses this host, and why.
  // kTimeout: nobody is there, or it says nothing.
  Result<void> await_connection(std::chrono::milliseconds timeout);

  struct Received {
    std::string text;  // the JSON as it came
    Result<Message> message;
  };
  // Waits at most `timeout`; nullopt when nothing came. Messages that the snapshot contained
  // already are skipped.
  std::optional<Received> receive(std::chrono::milliseconds timeout);

  // Asks for the present state, reports the losses since the last request, and counts gaps from
  // there. kTimeout: no answer. kCorrupt: not one of ours.
  Result<Snapshot> snapshot(const std::string& snapshot_endpoint,
                            std::chrono::milliseconds timeout);

  std::uint64_t lost() const;       // messages missed so far
  std::uint64_t malformed() const;  // messages that could not be decoded

 private:
  struct State;
  explicit Subscriber(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace troupe::actors::telemetry
