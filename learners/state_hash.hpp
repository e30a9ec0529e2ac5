// A 64-bit hash of parameters and optimizer state, bit by bit: what Learner::state_hash returns. A
// word at a time, because states are millions of floats.
#pragma once

#include <bit>
#include <cstdint>
#include <span>

namespace troupe::learners {

class StateHash {
 public:
  void add(std::uint64_t word) { hash_ = std::rotl((hash_ ^ word) * 0x9e3779b97f4a7c15ULL, 29); }
  void add(std::span<const float> values) {
    for (const float value : values) add(std::uint64_t{std::bit_cast<std::uint32_t>(value)});
  }
  std::uint64_t value() const { return hash_; }

 private:
  std::uint64_t hash_ = 0x5472'6f75'7065ULL;
};

}  // namespace troupe::learners
