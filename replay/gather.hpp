// Copies sampled items into the rows of a batch. Pure functions over immutable chunks; any thread.
#pragma once

#include <vector>

#include "replay/table_types.hpp"

namespace troupe::replay {

// observation columns | step columns | reward | discount | "next_" + observation columns | weight.
std::vector<Column> batch_columns_of(const Signature& signature);

// `columns` is batch_columns_of(signature). kInvalidArgument when the batch has other columns or
// another number of rows.
Result<void> gather(const SampledItems& items, const Signature& signature,
                    const std::vector<Column>& columns, Batch& batch);

}  // namespace troupe::replay
