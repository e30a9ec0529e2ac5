// How fast a table in this process takes steps and gives batches: one thread that inserts, then one
// that samples and gathers. Blocks the calling thread for the whole measurement.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "envs/spec/result.hpp"
#include "replay/compression.hpp"

namespace troupe::replay {

struct ReplayBenchmarkOptions {
  // state: transitions of 17 + 6 floats. pixels: sequences of 4 frames of 84 x 84 x 3 bytes, which
  // hold a stack of 3 and the one after it, and 3 actions of 6 floats.
  std::string shape = "state";
  // Of pixels: a file of frames as bytes, one after the other, which the steps show in turn; empty:
  // made-up ones (benchmark_frames). And how they are kept.
  std::filesystem::path frames;
  Compression compression = Compression::kLz4;
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
  double bytes_per_item = 0;           // TableStatistics::memory_bytes over items held
  double raw_bytes_per_item = 0;       // the same items' columns and rewards, unpacked
};

// `count` pictures of 84 x 84 x 3 bytes, one after the other: a sky that darkens upwards, a ground
// of tiles in perspective that moves, a body before both, and one bit of sensor noise in every
// fiftieth byte.
std::vector<std::uint8_t> benchmark_frames(std::uint32_t count);

// kInvalidArgument for an unknown shape or sizes below 1; kNotFound or kIo for frames that cannot
// be read.
Result<ReplayBenchmark> benchmark_replay(const ReplayBenchmarkOptions& options);

}  // namespace troupe::replay
