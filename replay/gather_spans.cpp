// Copies the chunks of a sequence one after the other: whole runs of rows at a time.
#include <algorithm>
#include <cstring>

#include "replay/gather.hpp"
#include "replay/importance.hpp"
#include "replay/item_rows.hpp"
#include "replay/stream_copy.hpp"

namespace troupe::replay {
namespace {

// Where the rows of one column go: `rows` of them for each item, of so many bytes each.
struct Target {
  std::uint8_t* data = nullptr;
  std::size_t rows = 0, row_bytes = 0;
  std::uint32_t stack = 1;

  std::uint8_t* row(std::size_t item, std::size_t index) const {
    return data + (item * rows + index) * row_bytes;
  }
  void clear(std::size_t item, std::size_t from) const {
    std::memset(row(item, from), 0, (rows - from) * row_bytes);
  }
  RowTarget shown() const { return {data, row_bytes / stack, stack}; }
};

class SpanGather {
 public:
  SpanGather(const SampledItems& items, const Signature& signature, const ItemShape& shape,
             double discount, Batch& batch)
      : shape_(shape),
        discount_(static_cast<float>(discount)),
        chains_(items.chains),
        batch_(batch),
        reader_(thread_row_reader()) {
    for (std::size_t i = 0; i < signature.observation.size(); ++i) {
      observation_.push_back(next_target(shape.length + 1));
      observation_.back().stack = signature.stack(i);
    }
    for (std::size_t i = 0; i < signature.step.size(); ++i)
      step_.push_back(next_target(shape.length));
    for (Target* target : {&reward_, &discounts_, &mask_, &first_})
      *target = next_target(shape.length);
    reader_.stream(exceeds_caches(batch));
  }

  // False when a chunk cannot be read.
  bool item(std::size_t i, const SampledItem& item) {
    const ItemRows rows(item, chains_, reader_);
    std::size_t done = 0;
    while (done < item.steps) {
      const auto place = rows.place(done, false);
      if (!copy(i, done, rows, place, item.steps - done)) return false;
    }
    const auto last = rows.place(done, true);
    for (std::size_t c = 0; c < observation_.size(); ++c) {
      const Target& target = observation_[c];
      if (!rows.stack(last, c, target.shown(), target.row(i, done))) return false;
      target.clear(i, done + 1);
    }
    for (const Target& target : step_) target.clear(i, done);
    for (const Target* target : {&reward_, &discounts_, &mask_, &first_}) target->clear(i, done);
    for (std::size_t t = 0; t < std::min<std::size_t>(shape_.burn_in, done); ++t)
      floats(mask_, i)[t] = 0;
    return true;
  }

 private:
  Target next_target(std::size_t rows) {
    const auto bytes = batch_.columns()[static_cast<std::size_t>(column_)].bytes();
    return {batch_.bytes(column_++).data(), rows, bytes / rows};
  }
  static float* floats(const Target& target, std::size_t item) {
    return reinterpret_cast<float*>(target.row(item, 0));
  }

  // At most `most` steps of one chunk from `place` on, behind the `done` ones.
  bool copy(std::size_t item, std::size_t& done, const ItemRows& rows, const ItemRows::Place& place,
            std::size_t most) {
    const PackedChunk& chunk = *rows.chunks()[place.chunk];
    const std::size_t row = place.row, count = std::min<std::size_t>(most, chunk.steps() - row);
    bool good = true;
    for (std::size_t c = 0; c < observation_.size(); ++c) {
      const Target& target = observation_[c];
      if (target.stack == 1) {
        good = reader_.copy(chunk, c, row, count, target.row(item, done)) && good;
        continue;
      }
      for (std::size_t t = 0; t < count; ++t)
        good = rows.stack({place.chunk, static_cast<std::uint32_t>(row + t)}, c, target.shown(),
                          target.row(item, done + t)) &&
               good;
    }
    for (std::size_t c = 0; c < step_.size(); ++c)
      good = reader_.copy(chunk, observation_.size() + c, row, count, step_[c].row(item, done)) &&
             good;
    std::memcpy(floats(reward_, item) + done, chunk.rewards().data() + row, count * sizeof(float));
    std::fill_n(floats(discounts_, item) + done, count, discount_);
    std::fill_n(floats(mask_, item) + done, count, 1.0F);
    std::fill_n(floats(first_, item) + done, count, 0.0F);
    if (chunk.first_step() + row == 0) floats(first_, item)[done] = 1;
    if (chunk.end() == EpisodeEnd::kTerminated && row + count == chunk.steps())
      floats(discounts_, item)[done + count - 1] = 0;
    done += count;
    return good;
  }

  const ItemShape& shape_;
  float discount_;
  const std::vector<PackedPtr>& chains_;
  Batch& batch_;
  RowReader& reader_;
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
  for (std::size_t i = 0; i < signature.observation.size(); ++i)
    add(shown(signature, i), length + 1);
  for (const Column& column : signature.step) add(column, length);
  for (const char* name : {"reward", "discount", "mask", "first"})
    add({name, DType::kF32, {}}, length);
  columns.push_back({"weight", DType::kF32, {}});
  return columns;
}

Result<void> gather_spans(const SampledItems& items, const Signature& signature,
                          const ItemShape& shape, double discount, Batch& batch) {
  if (auto fits = check_rows(items, batch); !fits) return fits;
  SpanGather gather(items, signature, shape, discount, batch);
  for (std::size_t i = 0; i < items.items.size(); ++i) {
    const SampledItem& item = items.items[i];
    if (!gather.item(i, item)) return corrupt_chunk(*item.chunk);
    batch.keys[i] = {items.shard, items.shard_epoch, item.slot, item.generation};
    batch.versions[i] = item.chunk->parameter_version();
  }
  stream_fence();
  importance_weights(items, batch.floats("weight"));
  return {};
}

}  // namespace troupe::replay
