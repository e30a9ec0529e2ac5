// The columns of batches of labelled pictures, whoever fills or reads them.
#pragma once

#include <cstdint>
#include <vector>

#include "envs/spec/spec.hpp"

namespace troupe::learners::data {

// "picture" u8 [side, side, channels], "label" i64 [].
inline std::vector<Column> picture_columns(std::int64_t side, std::int64_t channels) {
  return {{"picture", DType::kU8, {side, side, channels}}, {"label", DType::kI64, {}}};
}

}  // namespace troupe::learners::data
