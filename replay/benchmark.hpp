// How fast a table in this process takes steps and gives batches: one thread that inserts, then one
// that samples and gathers. Blocks the calling thread for the whole measurement.
#pragma once

#include <cstdint>
#include <string>

#include "envs/spec/result.hpp"

namespace troupe::replay {

struct ReplayBenchmarkOptions {
  // state: transitions of 17 + 6 floats. pixels: sequences of 4 frames of 84 x 84 x 3 bytes, which
  // hold a stack of 3 and the one after it, and 3 actions of 6 floats.
  std::string shape = "state";
  std::int64_t items = 0;  // held by the full table; 0: 100000 states or 4000 pixels
  std::int64_t batch = 256;
  std::int64_t n_step = 1;  // of state
  double seconds = 2;       // of inserting and of sampling, each
};

struct ReplayBenchmark {
  double inserts_per_second = 0;  // steps copied into chunks and inserted, into a full table
  double samples_per_second = 0;  // items drawn and gathered into one batch buffer
  double gather_bytes_per_second = 0;
  double memcpy_bytes_per_second = 0;  // of a block as large as a batch, in this very run
  double bytes_per_item = 0;           // payload and records held, over items held
};

// kInvalidArgument for an unknown shape or sizes below 1.
Result<ReplayBenchmark> benchmark_replay(const ReplayBenchmarkOptions& options);

}  // namespace troupe::replay
