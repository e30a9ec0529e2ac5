// A batch of labelled pictures, and how far in its data set a learner is with it. Plain values.
#pragma once

#include <cstdint>

#include "replay/batch.hpp"

namespace troupe::learners::data {

// What committed updates have consumed: all epochs before `epoch`, and the first `committed`
// positions of that one.
struct DataPlace {
  std::uint64_t epoch = 0;
  std::int64_t committed = 0;
  std::uint64_t corrupt = 0;  // of them, pictures that were left out
  bool operator==(const DataPlace&) const = default;
};

struct PictureBatch {
  replay::Batch batch;  // picture_columns; without the corrupt ones, never empty
  std::uint64_t epoch = 0;
  std::int64_t begin = 0, positions = 0;
  DataPlace after;  // once an update has consumed it
};

}  // namespace troupe::learners::data
