// A replay table: raw steps go in as chunks, n-step items come out as batches. Thread-safe: any
// number of threads may insert, sample, gather and read statistics at once. Owned by a replay
// shard, or used as a library on its own:
//
//   auto table = Table::create(options, signature).value();
//   table->insert(chunk, 1s);                          // waits while the limiter holds inserts
//   auto items = table->sample(256, 1s);               // waits for min_size and the ratio
//   Batch batch(table->batch_columns(), 256);
//   table->gather(*items, batch);                      // copies, without the lock
//
// Several tables may share what one insert brings: replay/table_group.hpp.
//
// Loss rule: kAccepted and kDuplicate acknowledge a chunk's steps. They stay until the
// remover names them or they were drawn max_times_sampled times, or until the table itself dies:
// then what came after its last checkpoint is lost.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "replay/item_store.hpp"
#include "replay/table_types.hpp"

namespace troupe::replay {

class CheckpointWriter;

// A file beside a table's file that holds chunks of several checkpoints.
struct SegmentFile {
  std::uint32_t number = 0;
  std::uint64_t bytes = 0;
  std::uint32_t crc32c = 0;
  std::filesystem::path path;
};

// A consistent cut of a table, which goes on sharing records and chunks with it. Holds no lock and
// keeps its chunks alive; write it with write_checkpoint (replay/checkpoint.hpp).
struct TableSnapshot {
  TableOptions options;
  Signature signature;
  StoreCut cut;
  TableStatistics statistics{};  // at the moment of the cut; empty in one that was read from a file
  std::vector<SegmentFile> segments{};  // of one that was read from files, for CheckpointWriter
  std::shared_ptr<CheckpointWriter> writer{};  // of the table's storage; null in one that was read
};

class Table {
 public:
  using Nanoseconds = std::chrono::nanoseconds;

  // kInvalidArgument for options out of range; names the option. kIo when the disk tier cannot be
  // made. `storage` is given to tables of one shard that are fed together (replay/table_group.hpp);
  // it has the disk tier then, and options.disk none.
  static Result<std::unique_ptr<Table>> create(const TableOptions& options, Signature signature,
                                               std::shared_ptr<ChunkStorage> storage = nullptr);

  // Never waits. Shape and finiteness are checked before the lock is taken; O(steps x n_step) under
  // it. The items that the chunk completes get `priority` (finite, >= 0; refused otherwise), or one
  // as high as the highest given to an item still held (Selector::insert).
  InsertOutcome try_insert(const ChunkPtr& chunk, std::optional<double> priority = {});
  // Waits for the limiter up to `timeout`; kWouldBlock then.
  InsertOutcome insert(const ChunkPtr& chunk, Nanoseconds timeout,
                       std::optional<double> priority = {});

  // Stores a chunk past the limiter, before or beside inserts: kAccepted or kRefused, never waits.
  // Its items are held and sampled like all others, meet min_size, and owe no samples
  // (RateLimiter::commit_balanced); in the statistics they are prefilled, not inserted.
  InsertOutcome prefill(const ChunkPtr& chunk);

  // n items drawn with replacement. kUnavailable with the limiter's reason when it holds samples
  // back, or when the table is closed or holds nothing; kTimeout with the reason after `timeout`;
  // kInvalidArgument when capacity x max_times_sampled is less than n. O(n) under the lock:
  // references and random numbers, no data.
  Result<SampledItems> try_sample(std::size_t n);
  Result<SampledItems> sample(std::size_t n, Nanoseconds timeout);

  // Columns that gather fills: those of replay/batch.hpp, u8 and further observation columns with
  // their "next_" twins, and every step column.
  std::vector<Column> batch_columns() const { return batch_columns_; }
  // Copies the items' data to the rows of `batch`, with keys and versions. Takes no lock. The batch
  // must have batch_columns() and as many rows as there are items: kInvalidArgument otherwise.
  Result<void> gather(const SampledItems& items, Batch& batch) const;

  // Sets the priorities of items that are still there; others are counted as stale, and values that
  // are not finite or below 0 as invalid. No effect on selectors without priorities. Returns how
  // many were current.
  std::size_t update_priorities(std::span<const ItemKey> keys, std::span<const double> values);

  // How many items may have been inserted in all, prefilled ones not counted, restored ones
  // included. For limiters of the kind kAllowance; the others go by their own rule.
  void allow_inserts(std::uint64_t items);
  // With kAllowance: waits up to `timeout` for more than `inserted` inserted items or the closing.
  void wait_for_inserts(std::uint64_t inserted, Nanoseconds timeout);

  // Drops the open windows of a worker that will not come back.
  void abandon(std::uint32_t worker);
  // Enters into the ledger what a predecessor of this shard had acknowledged and took with it.
  void count_lost(std::uint64_t steps, std::uint64_t items);
  // From now on nothing goes in or out, and everyone who waits returns kUnavailable.
  void close();

  TableStatistics statistics() const;
  // Samples per insert really given since min_size.
  double spi() const;
  // Why one more insert or n samples would wait now; empty when they would not.
  std::string insert_block_reason() const;
  std::string sample_block_reason(std::size_t n) const;

  // Under the lock it takes a reference per 4096 items and chunks, and copies the open windows, 4
  // bytes per free slot, and per item 4 for prioritised, 20 for heaps, 4 with max_times_sampled.
  TableSnapshot snapshot();
  // Takes over a checkpoint's content, sequence marks, ledger and random state; everything else of
  // this table's options stays, and each difference is named in the returned notes. The snapshot's
  // n_step, discount, selectors and signature must be this table's (kInvalidArgument). On an error
  // the table is unchanged.
  Result<std::vector<std::string>> adopt(TableSnapshot snapshot);

  // What this table shares with others; its own alone unless create was given one. Never null.
  const std::shared_ptr<ChunkStorage>& storage() const { return storage_; }
  // Of this table's checkpoints, with all their snapshots.
  CheckpointWriter& checkpoint_writer() { return *storage_->checkpoint_writer(); }
  const TableOptions& options() const { return options_; }
  const Signature& signature() const { return signature_; }

 private:
  using Clock = std::chrono::steady_clock;
  using Garbage = std::vector<PackedPtr>;
  static constexpr const char* kClosed = "the table is closed";
  // Runs while calls of one kind are held back by the limiter: from a refused attempt until one of
  // the same size would pass.
  struct BlockedClock {
    std::uint64_t wanted = 0;  // size of the refused attempt; 0: not running
    Clock::time_point since;
    void start(std::uint64_t n);
    void stop(std::uint64_t& total_ns);
  };

  friend class TableGroup;  // inserts, into this table alone or with others
  // What one table says of a chunk without looking at its columns.
  struct Verdict {
    enum class Kind { kAccepted, kDuplicate, kWouldBlock, kStale, kNeverFits } kind;
    std::string why;  // of kNeverFits
  };

  Table(const TableOptions& options, Signature signature, std::shared_ptr<ChunkStorage> storage);

  // Outside the lock: shape, size, priority and, if asked for, finiteness; whether the packed chunk
  // fits capacity_bytes. An outcome, which is counted, when it is refused.
  std::optional<InsertOutcome> check(const Chunk& chunk, std::optional<double> priority,
                                     bool columns = true);
  std::optional<InsertOutcome> check_room(const ChunkHeader& header, const PackedChunk& packed);
  // These expect the lock.
  Verdict judge_locked(const ChunkHeader& header, bool prefilled) const;
  InsertOutcome refuse_locked(const ChunkHeader& header, const Verdict& verdict);
  // Of a chunk that is kAccepted; returns the items that it completed.
  std::uint64_t insert_locked(const PackedPtr& chunk, std::optional<double> priority,
                              Garbage& garbage, bool prefilled);
  std::optional<Result<SampledItems>> sample_locked(std::size_t n, Garbage& garbage);
  void settle_clocks();
  std::string sample_reason_locked(std::size_t n) const;
  Result<std::vector<std::string>> compare(const TableSnapshot& snapshot) const;

  const TableOptions options_;
  const Signature signature_;
  const ChunkLayout& layout_;
  const std::shared_ptr<ChunkStorage> storage_;
  std::vector<Column> batch_columns_;

  mutable std::mutex mutex_;
  std::condition_variable may_insert_, may_sample_;
  std::unique_ptr<ItemStore> store_;
  BlockedClock insert_blocked_, sample_blocked_;
  bool closed_ = false;
};

}  // namespace troupe::replay
