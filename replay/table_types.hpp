// What goes into a table and comes out of it: options, outcomes, samples, statistics. Plain values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "envs/spec/result.hpp"
#include "replay/batch.hpp"
#include "replay/item_shape.hpp"
#include "replay/packed_chunk.hpp"
#include "replay/rate_limiter.hpp"
#include "replay/signature.hpp"

namespace troupe::replay {

// What the largest importance weight, 1, belongs to: the least likely item of each batch, or of all
// that are held (weights of different batches then compare, but are smaller).
enum class WeightScale : std::uint8_t { kBatch, kTable };

struct TableOptions {
  std::int64_t capacity = 1000000;  // items held at most; one more removes what `remover` names
  LimiterOptions limiter;
  std::int64_t n_step = 1;           // steps in an n-step item, 1 to 65535
  double discount = 0.99;            // gamma, 0 to 1
  ItemShape items;                   // its length is n_step's where the kind is n-step
  std::string selector = "uniform";  // draws samples: one of selector_names(), replay/selector.hpp
  std::string remover = "fifo";      // names what is removed: any of them, too
  std::uint32_t shard = 0, shard_epoch = 0;  // in every item key
  std::uint64_t seed = 0;                    // of the stream that draws the samples
  std::uint32_t max_chunk_steps = 1U << 20;  // longer chunks are refused
  // For the prioritised selector: alpha, drawn in proportion to p^alpha, 0 to 8; and beta of the
  // weights (replay/importance.hpp), 0 to 1. With other selectors all weights are 1.
  double priority_exponent = 0.6;
  double importance_exponent = 0.4;
  WeightScale weight_scale = WeightScale::kBatch;
  // An item leaves with its so-manieth draw; 0: no bound. One sample call waits until as many draws
  // are left as it wants.
  std::int64_t max_times_sampled = 0;
  // How columns are packed, by name (replay/compression.hpp); applies to chunks that come in.
  ColumnCompression compression{};
  // Payload is kept in a file instead of memory. Then capacity_bytes is at most disk.bytes.
  DiskOptions disk{};
  // Payload of the chunks held at most, as packed; 0: no bound. Before a chunk comes in, `remover`
  // names items to remove until it fits or none is held: chunks of open windows count and stay.
  // Removers other than fifo empty many chunks halfway before they free one.
  std::int64_t capacity_bytes = 0;

  // capacity_bytes, within what the disk tier holds; 0: no bound.
  std::int64_t payload_bound() const {
    const bool by_disk = disk.used() && (capacity_bytes == 0 || capacity_bytes > disk.bytes);
    return by_disk ? disk.bytes : capacity_bytes;
  }
  ItemShape shape() const {
    ItemShape shape = items;
    if (!shape.is_span()) shape.length = static_cast<std::uint32_t>(n_step);
    return shape;
  }
};

// `options` for a table of at most `size` items that gives each of them once, the oldest (queue) or
// the newest (stack) first. Inserts wait while it is full, samples while it holds too few: nothing
// is removed that was not drawn.
TableOptions queue_options(TableOptions options, std::int64_t size);
TableOptions stack_options(TableOptions options, std::int64_t size);

struct InsertOutcome {
  enum class Kind {
    kAccepted,    // stored: the steps are acknowledged
    kDuplicate,   // seen before, nothing changed: acknowledge again
    kWouldBlock,  // nothing changed; the limiter's reason is in error.message: offer it again later
    kRefused,     // never acceptable; error says why (kNotFinite, kInvalidArgument, kUnavailable if
                  // closed)
  };
  Kind kind = Kind::kAccepted;
  std::uint64_t items = 0;  // completed by an accepted chunk
  Error error;
};

// One drawn item. The references keep its chunks alive after they left the table.
struct SampledItem {
  PackedPtr chunk;       // holds s_t and a_t in `row`
  PackedPtr next_chunk;  // holds s_{t+k} in `next_row`; empty when it is `chunk`
  std::uint32_t row = 0, next_row = 0;
  std::uint32_t steps = 0;  // k
  // Sequences, episodes and items with frame stacks: all their chunks, the first to the last, are
  // SampledItems::chains[chain, chain + chain_size). `lead` rows come before s_t, the first of them
  // in row `first_row` of the first chunk.
  std::uint32_t chain = 0, chain_size = 0, first_row = 0, lead = 0;
  std::uint32_t slot = 0, generation = 0;
  float reward = 0, discount = 0;
  double probability = 0;  // with which the selector drew it
};

struct SampledItems {
  std::vector<SampledItem> items;
  std::vector<PackedPtr> chains;
  std::uint32_t shard = 0, shard_epoch = 0;
  // Of the table before the draw. A learner that draws from several tables shares its draws among
  // them by total_mass and needs the smallest probability over all: replay/importance.hpp.
  std::uint64_t held_items = 0;  // N
  double total_mass = 0;         // sum of p^alpha; N for selectors without priorities
  double min_probability = 0;    // the smallest one above 0
  // How gather makes weights; the table's options, unless the caller changes them here, which is
  // how beta is annealed.
  double importance_exponent = 0;  // beta
  WeightScale weight_scale = WeightScale::kBatch;
};

// Counters since the table began, restored ones included. The ledger, exact at every moment:
//   inserted_steps + prefilled_steps = held_steps + removed_steps + lost_steps
//   inserted_items + prefilled_items = held_items + removed_items + lost_items
// Every accepted step belongs to one item: the n-step item that begins with it, or the first
// sequence or episode that holds it. It is held while it waits in an open window (pending) or its
// item is in the table; removed once its item was removed or it was dropped.
struct TableStatistics {
  std::uint64_t inserted_steps = 0, held_steps = 0, removed_steps = 0, lost_steps = 0;
  std::uint64_t inserted_items = 0, held_items = 0, removed_items = 0, lost_items = 0;
  std::uint64_t prefilled_steps = 0, prefilled_items = 0;  // by Table::prefill, not by inserts
  std::uint64_t pending_steps = 0;                         // part of held_steps
  std::uint64_t dropped_steps = 0;  // part of removed_steps: they never became part of an item
  std::uint64_t sampled_items = 0;
  std::uint64_t chunks = 0;      // held
  std::uint64_t bytes_held = 0;  // payload of the held chunks, as packed
  std::uint64_t raw_bytes = 0;   // of the same unpacked: typed columns and rewards
  // What the allocator set aside for all that the table holds: chunks, records, selectors, windows.
  // Payload on disk is not part of it. Chunks that another table holds, too
  // (replay/table_group.hpp), are part of both: ChunkStorage::totals counts them once.
  std::uint64_t memory_bytes = 0;
  std::uint64_t chunk_memory_bytes = 0;  // part of it: chunks
  std::uint64_t disk_bytes = 0;          // payload in the disk tier
  std::uint64_t duplicate_chunks = 0, stale_chunks = 0;
  std::uint64_t not_finite_chunks = 0, malformed_chunks = 0;
  std::uint64_t priority_updates = 0, stale_priorities = 0, invalid_priorities = 0;
  std::uint64_t insert_blocked_ms = 0, sample_blocked_ms = 0;
  std::uint64_t waiting_items = 0;  // of the insert that the limiter holds back now; 0: none
  double total_mass = 0, min_probability = 0;  // as in SampledItems
  double cursor = 0;                           // of the limiter
  double samples_per_insert = 0;               // measured since min_size
  std::string limiter;                         // state in words
};

}  // namespace troupe::replay
