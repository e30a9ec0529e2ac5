// Which server holds which parameter. Pure, torch-free.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace troupe::learners {

struct Placement {
  std::vector<int> server_of;       // of each parameter
  std::vector<std::int64_t> bytes;  // of each server
  // The fullest server over the mean: 1 is even. What it exceeds 1 by, the others wait.
  double imbalance() const;
};

// Largest first, each to the server that holds the fewest bytes (Graham 1969: at most 4/3 of the
// best possible); ties go to the lower index, so everyone finds the same. `servers` at least 1.
Placement place_by_bytes(std::span<const std::int64_t> bytes, int servers);

}  // namespace troupe::learners
