// libFuzzer target: whatever the bytes, decode refuses them or makes a chunk that is well-formed,
// encodes to the same bytes again and that a table can take.
#include <algorithm>
#include <cstdlib>
#include <vector>

#include "replay/codec.hpp"
#include "tests/replay/fuzz/seal.hpp"
#include "tests/replay/fuzz/subject.hpp"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

using namespace troupe;
using namespace troupe::replay;

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t most, unsigned seed) {
  size = LLVMFuzzerMutate(data, size, most);
  if (seed % 8 != 0) fuzz::seal_chunk(data, size);
  return size;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Signature signature = fuzz::signature();
  const auto chunk = decode({data, size}, signature, {.max_bytes = 1 << 20, .max_steps = 4096});
  if (!chunk) return 0;
  if (!check_shape(**chunk, signature)) std::abort();
  const auto again = encode(**chunk, signature);
  if (!std::equal(again.begin(), again.end(), data, data + size)) std::abort();
  const auto table = Table::create({.capacity = 100, .n_step = 3}, signature).value();
  fuzz::feed(*table, 0, 0, 3);
  const auto outcome = table->try_insert(*chunk);
  const TableStatistics s = table->statistics();
  if (outcome.kind == InsertOutcome::Kind::kWouldBlock) std::abort();
  if (s.inserted_steps != s.held_steps + s.removed_steps) std::abort();
  if (s.held_items == 0) return 0;
  Batch batch(table->batch_columns(), 8);
  if (!table->gather(table->try_sample(8).value(), batch)) std::abort();
  return 0;
}
