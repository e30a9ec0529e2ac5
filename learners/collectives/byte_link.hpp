// One direction of a connection between two ranks: bytes in order. The seam under the ring; sockets
// and secured channels lie behind it. Torch-free.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>

#include "envs/spec/result.hpp"

namespace troupe::learners {

// Each object is used by one thread at a time. kUnavailable: the peer or the connection is gone;
// kTimeout: not all bytes moved in time. Either is final.
class ByteSender {
 public:
  virtual ~ByteSender() = default;  // closes; what was sent still arrives
  virtual Result<void> send(std::span<const std::uint8_t> bytes,
                            std::chrono::milliseconds timeout) = 0;
};

class ByteReceiver {
 public:
  virtual ~ByteReceiver() = default;
  virtual Result<void> receive(std::span<std::uint8_t> bytes,
                               std::chrono::milliseconds timeout) = 0;
};

}  // namespace troupe::learners
