// A batch as one message of the data channel. Pure functions.
//   words: batch id, items, items held by the table | columns in order | keys | versions
#pragma once

#include <cstdint>

#include "actors/runtime/channel.hpp"
#include "replay/batch.hpp"

namespace troupe::actors {

ChannelMessage encode_batch(const replay::Batch& batch, std::uint64_t batch_id, std::uint64_t held);

struct BatchHead {
  std::uint64_t batch_id = 0, items = 0, held = 0;
};
// kCorrupt when the message is too short for its head.
Result<BatchHead> batch_head(const ChannelMessage& message);

// Copies the message's items into rows first_row… of `batch`. kCorrupt when the sizes do not fit
// the batch's columns.
Result<void> decode_batch(const ChannelMessage& message, replay::Batch& batch,
                          std::int64_t first_row);

}  // namespace troupe::actors
