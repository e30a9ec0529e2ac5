// A set of small numbers that knows its members by rank. Owned by a selector; not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace troupe::replay {

// One bit a number, and counts over groups of 512, over 16 groups, and so on: 0.14 bytes a number.
class KeySet {
 public:
  using Key = std::uint32_t;

  // `key` must not be there; must be there. O(log n).
  void insert(Key key);
  void erase(Key key);
  std::size_t size() const { return size_; }
  // The rank-th member in ascending order, rank < size(). O(1) while all numbers up to the largest
  // that was ever there are members, else O(log n).
  Key nth(std::size_t rank) const;

  std::uint64_t memory_bytes() const;

 private:
  static constexpr std::size_t kGroup = 512, kFanOut = 16;

  void change(Key key, int by);

  std::vector<std::uint64_t> bits_;                 // [key / 64], a multiple of a group
  std::vector<std::vector<std::uint32_t>> counts_;  // [0] of groups; the last one is short
  std::size_t size_ = 0, extent_ = 0;               // extent: one more than the largest member ever
};

}  // namespace troupe::replay
