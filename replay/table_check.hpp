// Whether a table can be made of its options, and whether it could ever give a sample of a size.
// Pure functions; any thread.
#pragma once

#include <cstddef>

#include "envs/spec/result.hpp"
#include "replay/table_types.hpp"

namespace troupe::replay {

// kInvalidArgument for an option out of range or two that exclude each other; names them.
Result<void> check_table_options(const TableOptions& options, const Signature& signature);

// kInvalidArgument, with the arithmetic, when the table can never hold n draws at once.
Result<void> check_sample_size(const TableOptions& options, std::size_t n);

}  // namespace troupe::replay
