// Where a learner's batches come from, filled ahead of need by a thread of the source's own: shards
// in this process, or shards behind channels. The source is the sampler of the run: it shares draws
// among the shards by their mass, weighs the items as if all lay in one table, keeps samples per
// insert over all of them (global_limiter.hpp), and takes new priorities back. next(), release()
// and update_priorities() belong to one thread.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "actors/roles/global_limiter.hpp"
#include "envs/spec/random.hpp"
#include "replay/batch.hpp"
#include "replay/table.hpp"

namespace troupe::actors {

struct SourceOptions {
  std::int64_t items = 0;  // of a batch
  // What a batch counts to the limiter; 0: its items. Of one of several learners: the global batch.
  std::int64_t counted = 0;
  std::int64_t ahead = 1;                           // batches that wait filled at most, >= 1
  GlobalLimiter limiter{replay::LimiterOptions{}};  // as restored
  Random random;                                    // draws the shares
  // Of remote shards only. Follows another source, which alone gives leave to insert, unless it is
  // told to lead.
  bool follows = false;
  // Tables of this process know theirs.
  double importance_exponent = 0;
  replay::WeightScale weight_scale = replay::WeightScale::kBatch;
};

// What a source shows of itself.
struct SourceFigures {
  double cursor = 0, samples_per_insert = 0;          // of the global limiter
  std::uint64_t inserted = 0;                         // items, of all shards ever
  std::uint64_t priorities = 0, priorities_lost = 0;  // handed to shards; not
};

class BatchSource {
 public:
  BatchSource(std::vector<Column> columns, const SourceOptions& options);
  virtual ~BatchSource() = default;
  BatchSource(const BatchSource&) = delete;
  BatchSource& operator=(const BatchSource&) = delete;

  // The next filled batch, null when none came within `timeout`. It is the caller's until
  // release().
  replay::Batch* next(std::chrono::milliseconds timeout);
  void release(replay::Batch* batch);
  // New priorities of items of a batch, one a key: best effort, the lost ones are counted.
  virtual void update_priorities(std::span<const replay::ItemKey> keys,
                                 std::span<const float> values) = 0;
  // Why no batch comes; empty when one is ready.
  std::string waiting_on() const;
  // New addresses of remote shards; nothing for local ones.
  virtual void set_endpoints(const std::vector<std::string>&) {}
  // A remote source that followed gives leave from now on, as number `lead` of those that do; 0: it
  // follows again.
  virtual void set_lead(std::uint32_t /*lead*/) {}

  SourceFigures figures() const;
  // The limiter's state for a checkpoint of the learner as it is now: batches that were released
  // count as sampled, those that wait do not.
  std::string save_limiter() const;

 protected:
  // For the filling thread: an empty batch, null when there is none within `timeout`; then the
  // filled one.
  replay::Batch* take_empty(const std::stop_token& stop, std::chrono::milliseconds timeout);
  void give_filled(replay::Batch* batch);
  void set_reason(std::string reason);
  void count_priorities(std::size_t handed, std::size_t lost);

  const std::size_t items_, counted_;
  // Only through with_limiter.
  template <class Use>
  auto with_limiter(Use use) {
    const std::lock_guard lock(limiter_mutex_);
    return use(limiter_);
  }

 private:
  std::vector<std::unique_ptr<replay::Batch>> batches_;
  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<replay::Batch*> empty_, filled_;
  std::string reason_;
  std::uint64_t released_ = 0;  // batches
  std::uint64_t priorities_ = 0, priorities_lost_ = 0;
  mutable std::mutex limiter_mutex_;
  GlobalLimiter limiter_;
  const std::uint64_t first_samples_;
};

// Draws from tables of this process, whose limiters are allowances, and gives them their leave.
std::unique_ptr<BatchSource> make_local_source(std::vector<std::shared_ptr<replay::Table>> tables,
                                               const SourceOptions& options);

// Asks shards of other processes. `columns` are batch_columns_of the signature.
std::unique_ptr<BatchSource> make_remote_source(std::vector<Column> columns, std::string peer_name,
                                                const SourceOptions& options);

}  // namespace troupe::actors
