// In which order an epoch goes through a data set. A value: the same arguments give the same order
// in every process, so that a position is all that travels.
#pragma once

#include <cstdint>
#include <vector>

namespace troupe::learners::data {

struct OrderOptions {
  std::int64_t size = 0;
  std::uint64_t seed = 0;
  bool shuffle = true;  // false: 0, 1, 2, … in every epoch
  // 0: any record may stand anywhere. Otherwise files are read one after the other, in random
  // order, and records are mixed only within so many that follow each other: for disks that seek
  // slowly.
  std::int64_t window = 0;
  std::vector<std::int64_t> file_starts{0};  // DataSet::file_starts
};

class EpochOrder {
 public:
  EpochOrder(const OrderOptions& options, std::uint64_t epoch);
  std::int64_t size() const { return static_cast<std::int64_t>(indices_.size()); }
  // The record at a position, 0 <= position < size().
  std::int64_t operator[](std::int64_t position) const {
    return indices_[static_cast<std::size_t>(position)];
  }

 private:
  std::vector<std::int64_t> indices_;
};

}  // namespace troupe::learners::data
