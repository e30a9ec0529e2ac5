// What a collective between processes needs of a transport: bytes moved between ranks that agree on
// what they do. Whether they agree is checked by the Collective built on it (exchanged.hpp), so an
// Exchange may rely on equal sizes. Belongs to its rank's thread. Torch-free.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "envs/spec/result.hpp"
#include "learners/collectives/elements.hpp"

namespace troupe::learners {

// Every call waits for the others no longer than the exchange's timeout. An error (kUnavailable: a
// rank left or died, kTimeout: none came) is final: every later call returns it, and every other
// rank gets one within its own timeout.
class Exchange {
 public:
  virtual ~Exchange() = default;  // leaves
  virtual int rank() const = 0;
  virtual int size() const = 0;

  // `mine` of every rank, in the order of the ranks, into `all`: size() * mine.size() bytes.
  virtual Result<void> gather(std::span<const std::uint8_t> mine, std::span<std::uint8_t> all) = 0;
  // In place. kSum, kMin or kMax; equal inputs give equal bits, the same on every rank.
  virtual Result<void> reduce(Elements values, ReduceOp op) = 0;
  virtual Result<void> broadcast(std::span<std::uint8_t> bytes, int from) = 0;
  // Tells whoever waits for this rank that it will not come, and why. May wait for the transport to
  // take the words, no longer than the exchange's timeout.
  virtual void leave(std::string_view reason) = 0;
};

}  // namespace troupe::learners
