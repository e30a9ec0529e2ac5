// Sheets of pictures, and pictures as PNG files.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "envs/spec/result.hpp"
#include "learners/data/image.hpp"

namespace troupe::learners::data {

// Pictures of equal size row by row, `columns` in each row, black pixels of width `gap` between
// them; missing ones at the end are black. kInvalidArgument for none, different sizes or no column.
Result<Image> grid(std::span<const Image> pictures, int columns, int gap = 2);

// kInvalidArgument for other channels than 1, 3 and 4; kInternal with libpng's reason.
Result<std::vector<std::uint8_t>> encode_png(const Image& image);

}  // namespace troupe::learners::data
