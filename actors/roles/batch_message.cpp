// Implements batches as messages.
#include "actors/roles/batch_message.hpp"

#include <bit>

#include "actors/messages/data_protocol.hpp"

namespace troupe::actors {
namespace {

std::size_t bytes_per_item(const replay::Batch& batch) {
  std::size_t bytes = sizeof(replay::ItemKey) + sizeof(std::uint64_t) + sizeof(double);
  for (const Column& column : batch.columns()) bytes += column.bytes();
  return bytes;
}

}  // namespace

ChannelMessage encode_batch(const replay::Batch& batch, std::span<const double> probabilities,
                            std::uint64_t batch_id, double min_probability) {
  const auto items = static_cast<std::size_t>(batch.items());
  Bytes tail;
  tail.reserve(items * bytes_per_item(batch));
  const auto append = [&](const void* data, std::size_t size) {
    const auto* first = static_cast<const std::uint8_t*>(data);
    tail.insert(tail.end(), first, first + size);
  };
  for (int i = 0; i < static_cast<int>(batch.columns().size()); ++i)
    append(batch.bytes(i).data(), items * batch.columns()[static_cast<std::size_t>(i)].bytes());
  append(batch.keys.data(), items * sizeof(replay::ItemKey));
  append(batch.versions.data(), items * sizeof(std::uint64_t));
  append(probabilities.data(), items * sizeof(double));
  return words_message<3>(DataKind::kBatch,
                          {batch_id, items, std::bit_cast<std::uint64_t>(min_probability)}, tail);
}

ChannelMessage encode_no_batch(std::uint64_t batch_id) {
  return words_message<3>(DataKind::kBatch, {batch_id, 0, 0});
}

Result<BatchHead> batch_head(const ChannelMessage& message) {
  const auto words = words_of<3>(message);
  if (message.kind != static_cast<std::uint8_t>(DataKind::kBatch) || !words)
    return fail(ErrorCode::kCorrupt, "a message of the sample channel is not a batch");
  return BatchHead{(*words)[0], (*words)[1], std::bit_cast<double>((*words)[2])};
}

Result<void> decode_batch(const ChannelMessage& message, replay::Batch& batch,
                          std::span<double> probabilities, std::int64_t first_row) {
  const auto head = batch_head(message);
  if (!head) return tl::unexpected(head.error());
  const std::size_t offset = 3 * sizeof(std::uint64_t);
  const auto room = static_cast<std::uint64_t>(batch.items() - first_row);
  if (head->items > room || message.payload->size() != offset + head->items * bytes_per_item(batch))
    return fail(ErrorCode::kCorrupt, "a batch of " + std::to_string(head->items) + " items in " +
                                         std::to_string(message.payload->size()) +
                                         " bytes does not fit the learner's columns");
  const std::uint8_t* next = message.payload->data() + offset;
  const auto items = static_cast<std::size_t>(head->items);
  const auto row = static_cast<std::size_t>(first_row);
  const auto take = [&](void* to, std::size_t size) {
    std::memcpy(to, next, size);
    next += size;
  };
  for (int i = 0; i < static_cast<int>(batch.columns().size()); ++i) {
    const std::size_t bytes = batch.columns()[static_cast<std::size_t>(i)].bytes();
    take(batch.bytes(i).data() + row * bytes, items * bytes);
  }
  batch.keys.resize(static_cast<std::size_t>(batch.items()));
  batch.versions.resize(static_cast<std::size_t>(batch.items()));
  take(batch.keys.data() + row, items * sizeof(replay::ItemKey));
  take(batch.versions.data() + row, items * sizeof(std::uint64_t));
  take(probabilities.data() + row, items * sizeof(double));
  return {};
}

}  // namespace troupe::actors
