// Tables, chunks and endpoints for tests of the data plane.
#pragma once

#include <gtest/gtest.h>

#include "actors/messages/data_protocol.hpp"
#include "actors/runtime/channel.hpp"
#include "replay/codec.hpp"
#include "replay/table.hpp"

namespace troupe::actors::testing {

using std::chrono::milliseconds;

// For what must happen but has no promised time; a machine may hold a test up for long.
constexpr milliseconds kPatience{240000};

inline const replay::Signature kSignature{
    {{"observation", DType::kF32, {2}}}, {{"action", DType::kF32, {1}}}, 5};

inline replay::TableOptions table_options(std::uint32_t shard = 0) {
  replay::TableOptions options;
  options.capacity = 100000;
  options.shard = shard;
  options.shard_epoch = 9;
  options.seed = 11 + shard;
  return options;
}

inline std::shared_ptr<replay::Table> make_table(const replay::TableOptions& options) {
  auto made = replay::Table::create(options, kSignature);
  EXPECT_TRUE(made) << made.error().message;
  return std::move(*made);
}

inline std::shared_ptr<replay::Table> table(std::uint32_t shard = 0, double spi = 0,
                                            std::int64_t min_size = 1, double error_buffer = 0) {
  replay::TableOptions options = table_options(shard);
  options.limiter = {.min_size = min_size, .samples_per_insert = spi, .error_buffer = error_buffer};
  return make_table(options);
}

// One that inserts as far as a sampler allows.
inline std::shared_ptr<replay::Table> led_table(std::uint32_t shard = 0, std::uint32_t epoch = 9,
                                                bool prioritised = false) {
  replay::TableOptions options = table_options(shard);
  options.limiter.kind = replay::LimiterKind::kAllowance;
  options.shard_epoch = epoch;
  if (prioritised) options.selector = "prioritised";
  return make_table(options);
}

// A whole episode of `steps` steps whose observations all hold `value`.
inline replay::Chunk episode(std::uint64_t sequence, std::uint32_t steps, float value,
                             std::uint32_t worker = 0) {
  replay::Chunk chunk;
  chunk.header = {.worker = worker,
                  .incarnation = 1,
                  .sequence = sequence,
                  .environment = 0,
                  .episode = sequence,
                  .first_step = 0,
                  .steps = steps,
                  .end = replay::EpisodeEnd::kTruncated,
                  .parameter_version = 3,
                  .learner_epoch = 1,
                  .spec_hash = 5};
  const auto bytes = [](std::vector<float> values) {
    const auto* first = reinterpret_cast<const std::uint8_t*>(values.data());
    return std::vector<std::uint8_t>(first, first + values.size() * sizeof(float));
  };
  chunk.observation = {bytes(std::vector<float>(2 * (steps + 1), value))};
  chunk.step = {bytes(std::vector<float>(steps, value))};
  chunk.reward.assign(steps, value);
  return chunk;
}

inline ChannelMessage segment(const replay::Chunk& chunk) {
  return {static_cast<std::uint8_t>(DataKind::kSegment),
          std::make_shared<const Bytes>(replay::encode(chunk, kSignature))};
}

inline std::string unique_endpoint() {
  static int number = 0;
  return "inproc://data-plane-test-" + std::to_string(number++);
}

}  // namespace troupe::actors::testing
