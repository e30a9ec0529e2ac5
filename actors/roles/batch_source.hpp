// Where a learner's batches come from, filled ahead of need by a thread of the source's own: shards
// in this process, or shards behind channels. next() and release() belong to one thread.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "envs/spec/random.hpp"
#include "replay/batch.hpp"
#include "replay/table.hpp"

namespace troupe::actors {

// How many of `items` come from each shard, drawn in proportion to what each holds (multinomial);
// shards that hold nothing get nothing. All zero when no shard holds anything. Sums to `items`
// otherwise.
std::vector<std::size_t> draw_counts(std::size_t items, const std::vector<std::uint64_t>& held,
                                     Random& random);

class BatchSource {
 public:
  // `ahead` >= 1 batches wait filled at most.
  BatchSource(std::vector<Column> columns, std::int64_t items, std::int64_t ahead);
  virtual ~BatchSource() = default;
  BatchSource(const BatchSource&) = delete;
  BatchSource& operator=(const BatchSource&) = delete;

  // The next filled batch, null when none came within `timeout`. It is the caller's until
  // release().
  replay::Batch* next(std::chrono::milliseconds timeout);
  void release(replay::Batch* batch);
  // Why no batch comes; empty when one is ready.
  std::string waiting_on() const;
  // New addresses of remote shards; nothing for local ones.
  virtual void set_endpoints(const std::vector<std::string>&) {}

 protected:
  // For the filling thread: an empty batch, null when stopping; then the filled one, or it back.
  replay::Batch* take_empty(const std::stop_token& stop);
  void give_filled(replay::Batch* batch);
  void set_reason(std::string reason);

 private:
  std::vector<std::unique_ptr<replay::Batch>> batches_;
  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<replay::Batch*> empty_, filled_;
  std::string reason_;
};

// Draws from tables of this process.
std::unique_ptr<BatchSource> make_local_source(std::vector<std::shared_ptr<replay::Table>> tables,
                                               std::int64_t items, std::int64_t ahead,
                                               Random random);

// Asks shards of other processes. `columns` are batch_columns_of the signature.
std::unique_ptr<BatchSource> make_remote_source(std::vector<Column> columns, std::int64_t items,
                                                std::int64_t ahead, std::string peer_name,
                                                Random random);

}  // namespace troupe::actors
