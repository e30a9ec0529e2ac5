// Copies the chunks of a sequence one after the other: whole runs of rows at a time.
#include <algorithm>
#include <cstring>

#include "replay/gather.hpp"
#include "replay/importance.hpp"

namespace troupe::replay {
namespace {

// Where the rows of one column go: `rows` of them for each item.
struct Target {
  std::uint8_t* data = nullptr;
  std::size_t rows = 0, row_bytes = 0;

  std::uint8_t* row(std::size_t item, std::size_t index) const {
    return data + (item * rows + index) * row_bytes;
  }
  void copy(std::size_t item, std::size_t to, const std::vector<std::uint8_t>& from,
            std::size_t first, std::size_t count) const {
    std::memcpy(row(item, to), from.data() + first * row_bytes, count * row_bytes);
  }
  void clear(std::size_t item, std::size_t from) const {
    std::memset(row(item, from), 0, (rows - from) * row_bytes);
  }
};

class SpanGather {
 public:
  SpanGather(const Signature& signature, const ItemShape& shape, double discount, Batch& batch)
      : shape_(shape), discount_(static_cast<float>(discount)), batch_(batch) {
    for (std::size_t i = 0; i < signature.observation.size(); ++i)
      observation_.push_back(next_target(shape.length + 1));
    for (std::size_t i = 0; i < signature.step.size(); ++i)
      step_.push_back(next_target(shape.length));
    for (Target* target : {&reward_, &discounts_, &mask_, &first_})
      *target = next_target(shape.length);
  }

  void item(std::size_t i, const SampledItem& item, const std::vector<ChunkPtr>& middle) const {
    std::size_t done = 0;
    copy(i, done, *item.chunk, item.row, item.steps);
    // The chunks between are whole; the last one has the rest, or only s_{t+k}.
    for (std::size_t next = item.middle; item.next_chunk && done + item.next_row < item.steps;
         ++next)
      copy(i, done, *middle[next], 0, item.steps - done);
    if (item.next_chunk) copy(i, done, *item.next_chunk, 0, item.next_row);
    const Chunk& last = item.next_chunk ? *item.next_chunk : *item.chunk;
    for (std::size_t c = 0; c < observation_.size(); ++c) {
      observation_[c].copy(i, done, last.observation[c], item.next_row, 1);
      observation_[c].clear(i, done + 1);
    }
    for (const Target& target : step_) target.clear(i, done);
    for (const Target* target : {&reward_, &discounts_, &mask_, &first_}) target->clear(i, done);
    for (std::size_t t = 0; t < std::min<std::size_t>(shape_.burn_in, done); ++t)
      floats(mask_, i)[t] = 0;
  }

 private:
  Target next_target(std::size_t rows) {
    const auto bytes = batch_.columns()[static_cast<std::size_t>(column_)].bytes();
    return {batch_.bytes(column_++).data(), rows, bytes / rows};
  }
  static float* floats(const Target& target, std::size_t item) {
    return reinterpret_cast<float*>(target.row(item, 0));
  }

  // At most `most` steps of the chunk from `row` on, behind the `done` ones.
  void copy(std::size_t item, std::size_t& done, const Chunk& chunk, std::size_t row,
            std::size_t most) const {
    const std::size_t count = std::min<std::size_t>(most, chunk.header.steps - row);
    if (count == 0) return;
    for (std::size_t c = 0; c < observation_.size(); ++c)
      observation_[c].copy(item, done, chunk.observation[c], row, count);
    for (std::size_t c = 0; c < step_.size(); ++c)
      step_[c].copy(item, done, chunk.step[c], row, count);
    std::memcpy(floats(reward_, item) + done, chunk.reward.data() + row, count * sizeof(float));
    std::fill_n(floats(discounts_, item) + done, count, discount_);
    std::fill_n(floats(mask_, item) + done, count, 1.0F);
    std::fill_n(floats(first_, item) + done, count, 0.0F);
    if (chunk.header.first_step + row == 0) floats(first_, item)[done] = 1;
    if (chunk.header.end == EpisodeEnd::kTerminated && row + count == chunk.header.steps)
      floats(discounts_, item)[done + count - 1] = 0;
    done += count;
  }

  const ItemShape& shape_;
  float discount_;
  Batch& batch_;
  int column_ = 0;
  std::vector<Target> observation_, step_;
  Target reward_, discounts_, mask_, first_;
};

}  // namespace

std::vector<Column> batch_columns_of(const Signature& signature, const ItemShape& shape) {
  if (!shape.is_span()) return batch_columns_of(signature);
  const std::int64_t length = shape.length;
  std::vector<Column> columns;
  const auto add = [&](Column column, std::int64_t rows) {
    column.shape.insert(column.shape.begin(), rows);
    columns.push_back(std::move(column));
  };
  for (const Column& column : signature.observation) add(column, length + 1);
  for (const Column& column : signature.step) add(column, length);
  for (const char* name : {"reward", "discount", "mask", "first"})
    add({name, DType::kF32, {}}, length);
  columns.push_back({"weight", DType::kF32, {}});
  return columns;
}

Result<void> gather_spans(const SampledItems& items, const Signature& signature,
                          const ItemShape& shape, double discount, Batch& batch) {
  if (auto fits = check_rows(items, batch); !fits) return fits;
  const SpanGather gather(signature, shape, discount, batch);
  for (std::size_t i = 0; i < items.items.size(); ++i) {
    const SampledItem& item = items.items[i];
    gather.item(i, item, items.middle);
    batch.keys[i] = {items.shard, items.shard_epoch, item.slot, item.generation};
    batch.versions[i] = item.chunk->header.parameter_version;
  }
  importance_weights(items, batch.floats("weight"));
  return {};
}

}  // namespace troupe::replay
