// What the fuzz targets and their corpus have in common: one signature, chunks, table options.
#pragma once

#include <string_view>

#include "replay/selector.hpp"
#include "replay/table.hpp"

namespace troupe::replay::fuzz {

inline Signature signature() {
  return {.observation = {{"observation", DType::kF32, {2}}, {"pixels", DType::kU8, {3}}},
          .step = {{"action", DType::kF32, {1}}, {"choice", DType::kI32, {}}},
          .spec_hash = 77,
          .frame_stack = {1, 3}};
}

// Columns packed in every way.
inline ColumnCompression packing() {
  return {{"observation", Compression::kLz4},
          {"pixels", Compression::kZstd},
          {"choice", Compression::kLz4}};
}

inline ChunkPtr chunk_of(ChunkHeader header) {
  auto chunk = std::make_shared<Chunk>();
  header.spec_hash = 77;
  chunk->header = header;
  const std::size_t rows = header.observation_rows(), steps = header.steps;
  chunk->observation = {std::vector<std::uint8_t>(8 * rows),
                        std::vector<std::uint8_t>(3 * rows, 7)};
  chunk->step = {std::vector<std::uint8_t>(4 * steps), std::vector<std::uint8_t>(4 * steps, 1)};
  chunk->reward.assign(steps, 0.5F);
  return chunk;
}

// Chunk i of a stream of episodes of four chunks; every fifth chunk is lost.
inline void feed(Table& table, std::uint32_t worker, std::uint64_t first, std::uint64_t count) {
  for (std::uint64_t i = first; i < first + count; ++i)
    if (i % 5 != 4)
      table.try_insert(
          chunk_of({.worker = worker,
                    .sequence = i,
                    .episode = i / 4,
                    .first_step = static_cast<std::uint32_t>(i % 4 * 2),
                    .steps = 2,
                    .end = i % 4 == 3 ? EpisodeEnd::kTruncated : EpisodeEnd::kContinues}));
}

}  // namespace troupe::replay::fuzz
