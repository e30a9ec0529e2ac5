// One pass per item that copies its rows, with the next items' memory on its way into the cache.
#include "replay/gather.hpp"

#include <algorithm>
#include <string>

#include "replay/codec.hpp"
#include "replay/importance.hpp"
#include "replay/item_rows.hpp"
#include "replay/stream_copy.hpp"

namespace troupe::replay {
namespace {

// A gather reads, per item: the chunk's head and directory, then the rows. Each stage of the
// prefetch needs the one before, so they run at growing distance from the copy.
constexpr std::size_t kFarAhead = 16, kNear = 6;
// Of one row; the hardware's own prefetcher follows long rows.
constexpr std::size_t kFetched = 256, kLine = 64;

const PackedChunk& next_of(const SampledItem& item) {
  return item.next_chunk ? *item.next_chunk : *item.chunk;
}

class Gather {
 public:
  Gather(const SampledItems& items, const Signature& signature, Batch& batch)
      : items_(items), observations_(signature.observation.size()), reader_(thread_row_reader()) {
    int column = 0;
    const auto take = [&](std::vector<RowTarget>& targets, std::size_t count, bool stacked) {
      for (std::size_t i = 0; i < count; ++i, ++column) {
        const std::uint32_t stack = stacked ? signature.stack(i) : 1;
        targets.push_back({batch.bytes(column).data(),
                           batch.columns()[static_cast<std::size_t>(column)].bytes() / stack,
                           stack});
      }
    };
    take(observation_, observations_, true);
    take(step_, signature.step.size(), false);
    const auto take_floats = [&] { return reinterpret_cast<float*>(batch.bytes(column++).data()); };
    reward_ = take_floats();
    discount_ = take_floats();
    take(next_observation_, observations_, true);
    weight_ = take_floats();
    reader_.stream(exceeds_caches(batch));
  }

  Result<void> run(Batch& batch) {
    const auto& items = items_.items;
    for (std::size_t i = 0; i < items.size(); ++i) {
      prefetch(i);
      const SampledItem& item = items[i];
      const bool good = item.chain_size > 0 ? copy_stacks(i, item) : copy_rows(i, item);
      if (!good || !copy_steps(i, item)) return corrupt_chunk(*item.chunk);
      reward_[i] = item.reward;
      discount_[i] = item.discount;
      batch.keys[i] = {items_.shard, items_.shard_epoch, item.slot, item.generation};
      batch.versions[i] = item.chunk->parameter_version();
    }
    stream_fence();
    importance_weights(items_, {weight_, items.size()});
    return {};
  }

 private:
  static std::uint8_t* at(const RowTarget& target, std::size_t item) {
    return target.data + item * target.shown_bytes();
  }

  bool copy_rows(std::size_t i, const SampledItem& item) {
    const PackedChunk& next = next_of(item);
    bool good = true;
    for (std::size_t c = 0; c < observations_; ++c)
      good = reader_.copy(*item.chunk, c, item.row, 1, at(observation_[c], i)) &&
             reader_.copy(next, c, item.next_row, 1, at(next_observation_[c], i)) && good;
    return good;
  }

  bool copy_stacks(std::size_t i, const SampledItem& item) {
    const ItemRows rows(item, items_.chains, reader_);
    const auto now = rows.place(0, false), then = rows.place(item.steps, true);
    bool good = true;
    for (std::size_t c = 0; c < observations_; ++c)
      good = rows.stack(now, c, observation_[c], at(observation_[c], i)) &&
             rows.stack(then, c, next_observation_[c], at(next_observation_[c], i)) && good;
    return good;
  }

  bool copy_steps(std::size_t i, const SampledItem& item) {
    bool good = true;
    for (std::size_t c = 0; c < step_.size(); ++c)
      good = reader_.copy(*item.chunk, observations_ + c, item.row, 1, at(step_[c], i)) && good;
    return good;
  }

  void prefetch(std::size_t i) const {
    const auto& items = items_.items;
    if (i + kFarAhead < items.size()) {
      const SampledItem& item = items[i + kFarAhead];
      for (const PackedChunk* chunk : {item.chunk.get(), item.next_chunk.get()})
        if (chunk != nullptr) {
          __builtin_prefetch(chunk);
          __builtin_prefetch(reinterpret_cast<const std::uint8_t*>(chunk) + kLine);
        }
    }
    if (i + kNear < items.size()) {
      const SampledItem& item = items[i + kNear];
      for (std::size_t c = 0; c < observations_; ++c) {
        fetch(*item.chunk, c, item.row);
        fetch(next_of(item), c, item.next_row);
      }
      for (std::size_t c = 0; c < step_.size(); ++c)
        fetch(*item.chunk, observations_ + c, item.row);
    }
  }

  static void fetch(const PackedChunk& chunk, std::size_t column, std::size_t row) {
    const ColumnLayout& layout = chunk.layout().columns[column];
    if (layout.packed()) return;  // unpacking is what takes the time
    const std::uint8_t* first = chunk.column(column).data.data() + row * layout.row_bytes;
    for (std::size_t byte = 0; byte < std::min<std::size_t>(layout.row_bytes, kFetched);
         byte += kLine)
      __builtin_prefetch(first + byte);
  }

  const SampledItems& items_;
  const std::size_t observations_;
  RowReader& reader_;
  std::vector<RowTarget> observation_, step_, next_observation_;
  float* reward_ = nullptr;
  float* discount_ = nullptr;
  float* weight_ = nullptr;
};

}  // namespace

tl::unexpected<Error> corrupt_chunk(const PackedChunk& chunk) {
  return fail(ErrorCode::kCorrupt,
              "the packed rows of " + describe(chunk.header()) + " cannot be read");
}

Result<void> check_rows(const SampledItems& items, const Batch& batch) {
  if (batch.items() == static_cast<std::int64_t>(items.items.size())) return {};
  return fail(ErrorCode::kInvalidArgument, "batch has " + std::to_string(batch.items()) +
                                               " rows for " + std::to_string(items.items.size()) +
                                               " items");
}

bool exceeds_caches(const Batch& batch) {
  return exceeds_caches(Batch::bytes_of(batch.columns(), batch.items()));
}

Column shown(const Signature& signature, std::size_t observation) {
  Column column = signature.observation[observation];
  if (const std::uint32_t stack = signature.stack(observation); stack > 1)
    column.shape.insert(column.shape.begin(), stack);
  return column;
}

std::vector<Column> batch_columns_of(const Signature& signature) {
  std::vector<Column> columns;
  for (std::size_t i = 0; i < signature.observation.size(); ++i)
    columns.push_back(shown(signature, i));
  columns.insert(columns.end(), signature.step.begin(), signature.step.end());
  columns.push_back({"reward", DType::kF32, {}});
  columns.push_back({"discount", DType::kF32, {}});
  for (std::size_t i = 0; i < signature.observation.size(); ++i) {
    columns.push_back(shown(signature, i));
    columns.back().name = "next_" + columns.back().name;
  }
  columns.push_back({"weight", DType::kF32, {}});
  return columns;
}

Result<void> gather(const SampledItems& items, const Signature& signature, Batch& batch) {
  if (auto fits = check_rows(items, batch); !fits) return fits;
  return Gather(items, signature, batch).run(batch);
}

}  // namespace troupe::replay
