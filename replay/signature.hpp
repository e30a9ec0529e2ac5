// What one stored step consists of, and the immutable chunk of consecutive steps that travels from
// an environment actor to a replay shard and is packed there (packed_chunk.hpp). Chunks are shared
// by reference and never change after construction: any thread may read them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "envs/spec/spec.hpp"

namespace troupe::replay {

// Columns of a raw step. Observation columns have one row more than the others where an episode
// ends inside a chunk (its final observation). Reward (f32) and the end flags are not columns:
// every chunk has them.
struct Signature {
  std::vector<Column> observation;  // e.g. {"observation", f32, [17]}; u8 pixel columns beside it
  std::vector<Column> step;         // e.g. {"action", f32, [6]} and extras
  std::uint64_t spec_hash = 0;      // hash_of the environment's spec
  // [observation] How many successive rows of the column a batch shows at once, the newest last, on
  // an axis of their own before the column's; empty or 1: the row alone. Stored once each. Before
  // an episode's first row stands that row again.
  std::vector<std::uint32_t> frame_stack{};

  std::uint32_t stack(std::size_t column) const {
    return column < frame_stack.size() ? frame_stack[column] : 1;
  }
  // Steps before its own that an item's first observation shows: the largest stack less one.
  std::uint32_t lead() const;
  bool operator==(const Signature&) const = default;
};

// All f32 observation columns of a spec become one f32 column "observation" (concatenated in
// order); u8 columns keep their names; the action is "action": f32 [elements], a discrete choice
// i32 [].
Signature signature_of(const EnvSpec& spec);

// How the episode stands after the chunk's last step.
enum class EpisodeEnd : std::uint8_t { kContinues = 0, kTerminated = 1, kTruncated = 2 };

// Who made the chunk and where in its episode it stands. (worker, incarnation, sequence) names a
// chunk for ever; (worker, incarnation, environment, episode) names an episode.
struct ChunkHeader {
  std::uint32_t worker = 0;
  std::uint32_t incarnation = 0;
  std::uint64_t sequence = 0;     // counts a worker's chunks from 0; de-duplicates resent ones
  std::uint32_t environment = 0;  // index within the worker
  std::uint64_t episode = 0;      // counts an environment's episodes
  std::uint32_t first_step = 0;   // index in the episode of the chunk's first step
  std::uint32_t steps = 0;        // T >= 1
  EpisodeEnd end = EpisodeEnd::kContinues;
  std::uint64_t parameter_version = 0;  // of the policy that acted in the first step
  std::uint32_t learner_epoch = 0;      // of that version
  std::uint64_t spec_hash = 0;

  bool ends() const { return end != EpisodeEnd::kContinues; }
  // Rows in every observation column.
  std::uint32_t observation_rows() const { return steps + (ends() ? 1 : 0); }
  bool operator==(const ChunkHeader&) const = default;
};

// Column data is row-major: row r of column c starts at column(c).data() + r * bytes-of-row.
struct Chunk {
  ChunkHeader header;
  std::vector<std::vector<std::uint8_t>> observation;  // [signature.observation.size()][rows*bytes]
  std::vector<std::vector<std::uint8_t>> step;         // [signature.step.size()][T*bytes]
  std::vector<float> reward;                           // [T]

  std::size_t bytes() const;  // payload, for memory accounting
};
using ChunkPtr = std::shared_ptr<const Chunk>;

}  // namespace troupe::replay
