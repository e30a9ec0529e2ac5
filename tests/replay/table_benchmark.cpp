// Prints what a table does per second on this machine: inserts, samples, gathers, codec, snapshots.
// Not a test; run by hand: replay_table_benchmark [steps a chunk, default 12].
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <vector>

#include "envs/spec/random.hpp"
#include "replay/codec.hpp"
#include "replay/table.hpp"

namespace {

using namespace troupe;
using namespace troupe::replay;

// CPU time: other processes on the machine do not count.
struct Clock {
  using time_point = std::clock_t;
  static time_point now() { return std::clock(); }
};

constexpr std::uint32_t kItems = 1000000, kBatch = 256, kBatches = 4000;

double seconds_since(Clock::time_point start) {
  return static_cast<double>(Clock::now() - start) / CLOCKS_PER_SEC;
}

Signature signature() {
  return {.observation = {{"observation", DType::kF32, {17}}},
          .step = {{"action", DType::kF32, {6}}},
          .spec_hash = 1};
}

std::vector<ChunkPtr> make_chunks(std::uint32_t steps) {
  std::vector<ChunkPtr> chunks;
  for (std::uint32_t i = 0; i * steps < kItems; ++i) {
    auto chunk = std::make_shared<Chunk>();
    chunk->header = {.sequence = i, .first_step = i * steps, .steps = steps, .spec_hash = 1};
    chunk->observation = {std::vector<std::uint8_t>(steps * 17 * 4)};
    chunk->step = {std::vector<std::uint8_t>(steps * 6 * 4)};
    chunk->reward.assign(steps, 1.0F);
    chunks.push_back(std::move(chunk));
  }
  return chunks;
}

void report(const char* what, double count, double seconds, const char* unit) {
  std::printf("%-28s %12.0f %s   %8.2f us each\n", what, count / seconds, unit,
              1e6 * seconds / count);
}

}  // namespace

int main(int argc, char** argv) {
  const auto steps = static_cast<std::uint32_t>(argc > 1 ? std::atoi(argv[1]) : 12);
  const auto chunks = make_chunks(steps);
  TableOptions options;
  options.capacity = kItems;
  options.n_step = 5;
  auto table = Table::create(options, signature()).value();

  auto start = Clock::now();
  for (const ChunkPtr& chunk : chunks) table->try_insert(chunk);
  report("insert", kItems, seconds_since(start), "steps/s");

  start = Clock::now();
  std::size_t encoded = 0;
  for (const ChunkPtr& chunk : chunks) encoded += encode(*chunk, signature()).size();
  double seconds = seconds_since(start);
  report("encode", kItems, seconds, "steps/s");
  std::printf("%-28s %12.2f GB/s\n", "encode", static_cast<double>(encoded) / seconds / 1e9);

  Batch batch(table->batch_columns(), kBatch);
  std::vector<SampledItems> drawn;
  drawn.reserve(kBatches);
  start = Clock::now();
  for (std::uint32_t i = 0; i < kBatches; ++i) drawn.push_back(table->try_sample(kBatch).value());
  report("sample 256 (under the lock)", kBatches, seconds_since(start), "batches/s");
  start = Clock::now();
  for (const SampledItems& items : drawn) static_cast<void>(table->gather(items, batch));
  report("gather 256, cold", kBatches, seconds_since(start), "batches/s");
  start = Clock::now();
  for (std::uint32_t i = 0; i < kBatches; ++i) static_cast<void>(table->gather(drawn[0], batch));
  report("gather 256, warm", kBatches, seconds_since(start), "batches/s");
  drawn.clear();
  start = Clock::now();
  for (std::uint32_t i = 0; i < kBatches; ++i)
    static_cast<void>(table->gather(table->try_sample(kBatch).value(), batch));
  report("sample + gather 256", kBatches, seconds_since(start), "batches/s");

  start = Clock::now();
  const TableSnapshot snapshot = table->snapshot();
  std::printf("%-28s %12.1f ms for %zu items in %zu chunks\n", "snapshot (under the lock)",
              1e3 * seconds_since(start), snapshot.cut.items.size(), snapshot.cut.chunks.size());
  return 0;
}
