// Which server holds which arrays of D4PG's networks: the same answer for workers and servers.
// Pure, torch-free.
#pragma once

#include <cstddef>
#include <vector>

#include "learners/d4pg/step.hpp"
#include "learners/parameter_servers/placement.hpp"

namespace troupe::learners {

// One array: a segment of a network's flat buffer.
struct D4pgSlice {
  bool of_policy = false;   // else of the critic
  std::size_t segment = 0;  // of the network's layout
};

struct D4pgSlices {
  std::vector<std::vector<D4pgSlice>> of_server;
  Placement placement;
};

// Largest array first (place_by_bytes): server 0 always has one, others none if there are more
// servers than arrays.
D4pgSlices place_slices(const D4pgModel& model, int servers);

const models::Segment& segment_of(const D4pgModel& model, const D4pgSlice& slice);
// Step size of the slice's network.
double learning_rate_of(const D4pgOptions& options, bool of_policy);

}  // namespace troupe::learners
