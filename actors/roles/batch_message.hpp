// A batch as one message of the data channel. Pure functions.
//   words: batch id, items, bits of the smallest probability | columns in order | keys | versions
//   | probabilities
#pragma once

#include <cstdint>
#include <vector>

#include "actors/runtime/channel.hpp"
#include "replay/batch.hpp"

namespace troupe::actors {

struct BatchHead {
  std::uint64_t batch_id = 0;
  std::uint64_t items = 0;     // 0: the shard holds nothing to draw from
  double min_probability = 0;  // of all items of the shard, at the draw
};

// `probabilities`: with which the shard drew each item.
ChannelMessage encode_batch(const replay::Batch& batch, std::span<const double> probabilities,
                            std::uint64_t batch_id, double min_probability);
// The answer of a shard that holds nothing.
ChannelMessage encode_no_batch(std::uint64_t batch_id);

// kCorrupt when the message is too short for its head.
Result<BatchHead> batch_head(const ChannelMessage& message);

// Copies the message's items into rows first_row… of `batch` and their probabilities to the same
// places of `probabilities`, which has as many. kCorrupt when the sizes do not fit the batch's
// columns.
Result<void> decode_batch(const ChannelMessage& message, replay::Batch& batch,
                          std::span<double> probabilities, std::int64_t first_row);

}  // namespace troupe::actors
