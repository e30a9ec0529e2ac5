// Labelled pictures as learners get them: views of the caller's memory. Torch-free.
#pragma once

#include <algorithm>
#include <cstdint>

#include "envs/spec/result.hpp"
#include "learners/supervised/options.hpp"
#include "replay/batch.hpp"

namespace troupe::learners {

// Pictures as they are stored: [count][side][side][channels].
struct PictureRows {
  std::int64_t count = 0, global_count = 0;  // of this replica; of all in sync
  std::int64_t side = 0, channels = 0;
  const std::uint8_t* pixels = nullptr;
  const std::int64_t* labels = nullptr;

  // Rows of part `index` when `total` are divided into parts as equal as can be, and its first row.
  static std::int64_t rows_of_part(std::int64_t total, std::int64_t parts, std::int64_t index) {
    return total / parts + (index < total % parts ? 1 : 0);
  }
  static std::int64_t first_of_part(std::int64_t total, std::int64_t parts, std::int64_t index) {
    return index * (total / parts) + std::min(index, total % parts);
  }
  PictureRows part_of(std::int64_t parts, std::int64_t index) const {
    return part(first_of_part(count, parts, index), rows_of_part(count, parts, index));
  }
  PictureRows part(std::int64_t first, std::int64_t rows) const {
    PictureRows out = *this;
    out.count = rows;
    out.pixels += first * side * side * channels;
    out.labels += first;
    return out;
  }
};

// Views of a batch of data::picture_columns. kInvalidArgument naming the column that is missing or
// of another type or shape, or the first row whose label is none of the classes.
Result<PictureRows> picture_rows(const replay::Batch& batch, const PictureSpec& pictures);
// The latter alone.
Result<void> check_labels(const PictureRows& rows, std::int64_t classes);

}  // namespace troupe::learners
