// A tree of counts over a bitmap.
#include "replay/selectors/key_set.hpp"

#include <bit>

namespace troupe::replay {

void KeySet::insert(Key key) {
  while (bits_.size() * 64 <= key) {
    bits_.resize(bits_.size() + kGroup / 64);
    if (counts_.empty()) counts_.emplace_back();
    counts_.front().push_back(0);
    for (std::size_t level = 0; counts_[level].size() > kFanOut; ++level) {
      if (level + 1 == counts_.size()) {
        // A new top: it sums what is below it already.
        std::vector<std::uint32_t>& sums = counts_.emplace_back();
        for (std::size_t i = 0; i < counts_[level].size(); ++i) {
          if (i % kFanOut == 0) sums.push_back(0);
          sums.back() += counts_[level][i];
        }
      } else if (counts_[level + 1].size() * kFanOut < counts_[level].size()) {
        counts_[level + 1].push_back(0);
      }
    }
  }
  bits_[key / 64] |= std::uint64_t{1} << key % 64;
  change(key, 1);
  if (key >= extent_) extent_ = std::size_t{key} + 1;
}

void KeySet::erase(Key key) {
  bits_[key / 64] &= ~(std::uint64_t{1} << key % 64);
  change(key, -1);
}

void KeySet::change(Key key, int by) {
  std::size_t node = key / kGroup;
  for (auto& counts : counts_) {
    counts[node] += static_cast<std::uint32_t>(by);
    node /= kFanOut;
  }
  size_ += static_cast<std::size_t>(by);
}

KeySet::Key KeySet::nth(std::size_t rank) const {
  if (size_ == extent_) return static_cast<Key>(rank);
  std::size_t node = 0;
  for (std::size_t level = counts_.size(); level-- > 0;) {
    node *= kFanOut;
    while (rank >= counts_[level][node]) rank -= counts_[level][node++];
  }
  std::size_t word = node * (kGroup / 64);
  for (std::size_t here = 0; rank >= (here = static_cast<std::size_t>(std::popcount(bits_[word])));
       ++word)
    rank -= here;
  std::uint64_t left = bits_[word];
  for (; rank > 0; --rank) left &= left - 1;
  return static_cast<Key>(word * 64 + static_cast<std::size_t>(std::countr_zero(left)));
}

std::uint64_t KeySet::memory_bytes() const {
  std::uint64_t total = sizeof(std::uint64_t) * bits_.capacity();
  for (const auto& counts : counts_) total += sizeof(std::uint32_t) * counts.capacity();
  return total;
}

}  // namespace troupe::replay
