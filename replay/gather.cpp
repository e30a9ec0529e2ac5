// One pass per item that copies its rows, with the next items' memory on its way into the cache.
#include "replay/gather.hpp"

#include <cstring>
#include <string>

#include "replay/importance.hpp"

namespace troupe::replay {
namespace {

using Rows = std::vector<std::vector<std::uint8_t>>;

// Where the rows of one column go.
struct Target {
  std::uint8_t* data;
  std::size_t row_bytes;

  void copy(std::size_t to, const std::vector<std::uint8_t>& from, std::size_t row) const {
    std::memcpy(data + to * row_bytes, from.data() + row * row_bytes, row_bytes);
  }
};

// A gather reads, per item: the chunk, its vectors of columns, and the rows. Each stage of the
// prefetch needs the one before, so they run at growing distance from the copy.
constexpr std::size_t kFarAhead = 12, kAhead = 8, kNear = 4;

const Chunk& next_of(const SampledItem& item) {
  return item.next_chunk ? *item.next_chunk : *item.chunk;
}

class Gather {
 public:
  Gather(const SampledItems& items, const Signature& signature, Batch& batch)
      : items_(items.items) {
    int column = 0;
    const auto take = [&](std::vector<Target>& targets, std::size_t count) {
      for (std::size_t i = 0; i < count; ++i, ++column)
        targets.push_back({batch.bytes(column).data(),
                           batch.columns()[static_cast<std::size_t>(column)].bytes()});
    };
    take(observation_, signature.observation.size());
    take(step_, signature.step.size());
    const auto take_floats = [&] { return reinterpret_cast<float*>(batch.bytes(column++).data()); };
    reward_ = take_floats();
    discount_ = take_floats();
    take(next_observation_, signature.observation.size());
    weight_ = take_floats();
  }

  void run(const SampledItems& items, Batch& batch) const {
    for (std::size_t i = 0; i < items_.size(); ++i) {
      prefetch(i);
      const SampledItem& item = items_[i];
      const Chunk& chunk = *item.chunk;
      const Chunk& next = next_of(item);
      for (std::size_t c = 0; c < observation_.size(); ++c) {
        observation_[c].copy(i, chunk.observation[c], item.row);
        next_observation_[c].copy(i, next.observation[c], item.next_row);
      }
      for (std::size_t c = 0; c < step_.size(); ++c) step_[c].copy(i, chunk.step[c], item.row);
      reward_[i] = item.reward;
      discount_[i] = item.discount;
      batch.keys[i] = {items.shard, items.shard_epoch, item.slot, item.generation};
      batch.versions[i] = chunk.header.parameter_version;
    }
    importance_weights(items, {weight_, items_.size()});
  }

 private:
  void prefetch(std::size_t i) const {
    if (i + kFarAhead < items_.size()) {
      const SampledItem& item = items_[i + kFarAhead];
      __builtin_prefetch(&item.chunk->observation);
      __builtin_prefetch(&next_of(item).observation);
    }
    if (i + kAhead < items_.size()) {
      const SampledItem& item = items_[i + kAhead];
      __builtin_prefetch(item.chunk->observation.data());
      __builtin_prefetch(item.chunk->step.data());
      if (item.next_chunk) __builtin_prefetch(item.next_chunk->observation.data());
    }
    if (i + kNear < items_.size()) {
      const SampledItem& item = items_[i + kNear];
      for (std::size_t c = 0; c < observation_.size(); ++c) {
        fetch_row(observation_[c], item.chunk->observation[c], item.row);
        fetch_row(next_observation_[c], next_of(item).observation[c], item.next_row);
      }
      for (std::size_t c = 0; c < step_.size(); ++c)
        fetch_row(step_[c], item.chunk->step[c], item.row);
    }
  }

  // The first lines of a row; the hardware's own prefetcher follows long rows.
  static void fetch_row(const Target& target, const std::vector<std::uint8_t>& column,
                        std::size_t row) {
    const std::uint8_t* first = column.data() + row * target.row_bytes;
    __builtin_prefetch(first);
    if (target.row_bytes > 64) __builtin_prefetch(first + 64);
  }

  const std::vector<SampledItem>& items_;
  std::vector<Target> observation_, step_, next_observation_;
  float* reward_ = nullptr;
  float* discount_ = nullptr;
  float* weight_ = nullptr;
};

}  // namespace

Result<void> check_rows(const SampledItems& items, const Batch& batch) {
  if (batch.items() == static_cast<std::int64_t>(items.items.size())) return {};
  return fail(ErrorCode::kInvalidArgument, "batch has " + std::to_string(batch.items()) +
                                               " rows for " + std::to_string(items.items.size()) +
                                               " items");
}

std::vector<Column> batch_columns_of(const Signature& signature) {
  std::vector<Column> columns = signature.observation;
  columns.insert(columns.end(), signature.step.begin(), signature.step.end());
  columns.push_back({"reward", DType::kF32, {}});
  columns.push_back({"discount", DType::kF32, {}});
  for (const Column& column : signature.observation)
    columns.push_back({"next_" + column.name, column.dtype, column.shape});
  columns.push_back({"weight", DType::kF32, {}});
  return columns;
}

Result<void> gather(const SampledItems& items, const Signature& signature, Batch& batch) {
  if (auto fits = check_rows(items, batch); !fits) return fits;
  Gather(items, signature, batch).run(items, batch);
  return {};
}

}  // namespace troupe::replay
