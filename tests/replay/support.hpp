// Chunks of made-up episodes for the replay tests: every number says where it comes from, so that a
// wrong join of steps shows.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "replay/signature.hpp"
#include "replay/table.hpp"

namespace troupe::replay::testing {

// One f32 observation of two numbers (episode, step) and one f32 action (100 x episode + step).
inline Signature small_signature() {
  return {.observation = {{"observation", DType::kF32, {2}}},
          .step = {{"action", DType::kF32, {1}}},
          .spec_hash = 77};
}

inline std::vector<std::uint8_t> bytes_of(const std::vector<float>& values) {
  std::vector<std::uint8_t> bytes(values.size() * sizeof(float));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

// Steps [first, first + steps) of an episode whose reward at step t is `reward(t)`.
template <class Reward>
std::shared_ptr<Chunk> make_chunk(ChunkHeader header, Reward reward) {
  auto chunk = std::make_shared<Chunk>();
  header.spec_hash = 77;
  chunk->header = header;
  std::vector<float> observation, action;
  for (std::uint32_t row = 0; row < header.observation_rows(); ++row) {
    observation.push_back(static_cast<float>(header.episode));
    observation.push_back(static_cast<float>(header.first_step + row));
  }
  for (std::uint32_t row = 0; row < header.steps; ++row) {
    action.push_back(static_cast<float>(100 * header.episode + header.first_step + row));
    chunk->reward.push_back(static_cast<float>(reward(header.first_step + row)));
  }
  chunk->observation = {bytes_of(observation)};
  chunk->step = {bytes_of(action)};
  return chunk;
}

inline std::shared_ptr<Chunk> make_chunk(const ChunkHeader& header) {
  return make_chunk(header, [](std::uint32_t) { return 1.0; });
}

// As a table of the small signature holds it.
inline PackedPtr packed(const Chunk& chunk) {
  return PackedChunk::pack(chunk, ChunkLayout::of(small_signature(), {}));
}

inline TableOptions small_options(std::int64_t n_step = 1, double discount = 0.99) {
  TableOptions options;
  options.capacity = 1000;
  options.n_step = n_step;
  options.discount = discount;
  return options;
}

inline std::unique_ptr<Table> make_table(const TableOptions& options) {
  return Table::create(options, small_signature()).value();
}

// A batch of n sampled and gathered items.
inline Batch take_batch(Table& table, std::size_t n) {
  Batch batch(table.batch_columns(), static_cast<std::int64_t>(n));
  const auto items = table.try_sample(n).value();
  EXPECT_TRUE(table.gather(items, batch));
  return batch;
}

}  // namespace troupe::replay::testing
