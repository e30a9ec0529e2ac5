// Copies sampled items into the rows of a batch. Pure functions over immutable chunks; any thread.
#pragma once

#include <vector>

#include "replay/table_types.hpp"

namespace troupe::replay {

// observation columns | step columns | reward | discount | "next_" + observation columns | weight.
// An observation column with a frame stack of k has an axis of k rows, the newest last, before its
// own; before the episode's first row stands that row again.
std::vector<Column> batch_columns_of(const Signature& signature);

// Of sequences and episodes, with L = shape.length steps on a time axis before each column's own:
//   observation columns  [L + 1, ...]   s_t to s_{t+k}; for an episode that ends within the
//   sequence
//                                       and another that follows, the first of the latter
//   step columns         [L, ...]
//   reward, discount     f32 [L]        r and gamma, 0 where the step terminated its episode
//   mask                 f32 [L]        1 for the item's own steps, without the burn-in; else 0
//   first                f32 [L]        1 where an episode begins
//   weight               f32 []
// Rows beyond the item's k steps are zero.
std::vector<Column> batch_columns_of(const Signature& signature, const ItemShape& shape);

// The batch has batch_columns_of(signature), and gather_spans' that of the shape. kInvalidArgument
// when it has another number of rows; kCorrupt, naming the chunk, when packed rows cannot be read.
Result<void> gather(const SampledItems& items, const Signature& signature, Batch& batch);
Result<void> gather_spans(const SampledItems& items, const Signature& signature,
                          const ItemShape& shape, double discount, Batch& batch);
// One column as batches show it.
Column shown(const Signature& signature, std::size_t observation);
tl::unexpected<Error> corrupt_chunk(const PackedChunk& chunk);
bool exceeds_caches(const Batch& batch);
Result<void> check_rows(const SampledItems& items, const Batch& batch);

}  // namespace troupe::replay
