// Implements the exchange of batches with the filling thread, and drawing from local tables.
#include "actors/roles/batch_source.hpp"

#include <algorithm>
#include <numeric>

#include "actors/runtime/thread_settings.hpp"
#include "replay/gather.hpp"

namespace troupe::actors {

using std::chrono::milliseconds;

std::vector<std::size_t> draw_counts(std::size_t items, const std::vector<std::uint64_t>& held,
                                     Random& random) {
  std::vector<std::size_t> counts(held.size());
  const std::uint64_t total = std::accumulate(held.begin(), held.end(), std::uint64_t{0});
  if (total == 0) return counts;
  if (held.size() == 1) {
    counts.front() = items;
    return counts;
  }
  for (std::size_t i = 0; i < items; ++i) {
    std::uint64_t ticket = random.below(total);
    std::size_t shard = 0;
    while (ticket >= held[shard]) ticket -= held[shard++];
    ++counts[shard];
  }
  return counts;
}

BatchSource::BatchSource(std::vector<Column> columns, std::int64_t items, std::int64_t ahead) {
  // One more than wait filled: the learner holds it.
  for (std::int64_t i = 0; i < ahead + 1; ++i) {
    batches_.push_back(std::make_unique<replay::Batch>(columns, items));
    empty_.push_back(batches_.back().get());
  }
}

replay::Batch* BatchSource::next(milliseconds timeout) {
  std::unique_lock lock(mutex_);
  if (!changed_.wait_for(lock, timeout, [this] { return !filled_.empty(); })) return nullptr;
  replay::Batch* batch = filled_.front();
  filled_.pop_front();
  return batch;
}

void BatchSource::release(replay::Batch* batch) {
  {
    const std::lock_guard lock(mutex_);
    empty_.push_back(batch);
  }
  changed_.notify_all();
}

std::string BatchSource::waiting_on() const {
  const std::lock_guard lock(mutex_);
  return filled_.empty() ? reason_ : std::string();
}

replay::Batch* BatchSource::take_empty(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  if (!changed_.wait(lock, stop, [this] { return !empty_.empty(); })) return nullptr;
  replay::Batch* batch = empty_.front();
  empty_.pop_front();
  return batch;
}

void BatchSource::give_filled(replay::Batch* batch) {
  {
    const std::lock_guard lock(mutex_);
    filled_.push_back(batch);
    reason_.clear();
  }
  changed_.notify_all();
}

void BatchSource::set_reason(std::string reason) {
  const std::lock_guard lock(mutex_);
  reason_ = std::move(reason);
}

namespace {

constexpr milliseconds kWait{50};  // between looks at the stop token

class LocalSource final : public BatchSource {
 public:
  LocalSource(std::vector<std::shared_ptr<replay::Table>> tables, std::int64_t items,
              std::int64_t ahead, Random random)
      : BatchSource(tables.front()->batch_columns(), items, ahead),
        tables_(std::move(tables)),
        random_(random),
        thread_([this](const std::stop_token& stop) { run(stop); }) {}

 private:
  void run(const std::stop_token& stop) {
    name_thread("prefetch");
    while (replay::Batch* batch = take_empty(stop)) {
      if (!fill(*batch, stop)) return;
      give_filled(batch);
    }
  }

  bool fill(replay::Batch& batch, const std::stop_token& stop) {
    const auto items = static_cast<std::size_t>(batch.items());
    while (!stop.stop_requested()) {
      std::vector<std::uint64_t> held;
      for (const auto& table : tables_)
        held.push_back(tables_.size() == 1 ? 1 : table->statistics().held_items);
      const std::vector<std::size_t> counts = draw_counts(items, held, random_);
      replay::SampledItems drawn;
      std::vector<std::pair<std::size_t, std::size_t>> origins;  // table, items
      for (std::size_t i = 0; i < counts.size(); ++i)
        if (counts[i] > 0 && !draw(i, counts[i], drawn, origins, stop)) return false;
      if (drawn.items.empty()) {
        set_reason("every shard is empty");
        std::this_thread::sleep_for(kWait);
        continue;
      }
      if (auto gathered = replay::gather(drawn, tables_.front()->signature(), batch); !gathered) {
        set_reason(gathered.error().message);
        return false;
      }
      name_origins(batch, origins);
      return true;
    }
    return false;
  }

  bool draw(std::size_t table, std::size_t count, replay::SampledItems& drawn,
            std::vector<std::pair<std::size_t, std::size_t>>& origins,
            const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      auto items = tables_[table]->sample(count, kWait);
      if (items) {
        std::move(items->items.begin(), items->items.end(), std::back_inserter(drawn.items));
        drawn.shard = items->shard;
        drawn.shard_epoch = items->shard_epoch;
        origins.emplace_back(table, count);
        return true;
      }
      set_reason(items.error().message);
      if (items.error().code != ErrorCode::kTimeout) std::this_thread::sleep_for(kWait);  // closed
    }
    return false;
  }

  // gather() writes one shard's name into all keys; with several shards each row gets its own.
  void name_origins(replay::Batch& batch,
                    const std::vector<std::pair<std::size_t, std::size_t>>& origins) const {
    std::size_t row = 0;
    for (const auto& [table, count] : origins)
      for (std::size_t i = 0; i < count; ++i, ++row) {
        batch.keys[row].shard = tables_[table]->options().shard;
        batch.keys[row].shard_epoch = tables_[table]->options().shard_epoch;
      }
  }

  std::vector<std::shared_ptr<replay::Table>> tables_;
  Random random_;
  std::jthread thread_;  // last: stopped and joined before the rest goes
};

}  // namespace

std::unique_ptr<BatchSource> make_local_source(std::vector<std::shared_ptr<replay::Table>> tables,
                                               std::int64_t items, std::int64_t ahead,
                                               Random random) {
  return std::make_unique<LocalSource>(std::move(tables), items, ahead, random);
}

}  // namespace troupe::actors
