// Prints what a table does per second on this machine: inserts, samples, gathers, codec, snapshots.
// Not a test; run by hand: replay_table_benchmark [steps a chunk, default 12].
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <thread>
#include <vector>

#include "envs/spec/random.hpp"
#include "replay/checkpoint.hpp"
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

using Wall = std::chrono::steady_clock;

double microseconds_since(Wall::time_point start) {
  return std::chrono::duration<double, std::micro>(Wall::now() - start).count();
}

void report_spread(const char* what, std::vector<double> microseconds) {
  if (microseconds.empty()) return;
  std::sort(microseconds.begin(), microseconds.end());
  std::printf("%-28s %10.1f min %10.1f median %10.1f p99 %10.1f max us (%zu)\n", what,
              microseconds.front(), microseconds[microseconds.size() / 2],
              microseconds[microseconds.size() * 99 / 100], microseconds.back(),
              microseconds.size());
}

// Latencies of inserts and samples, and how long each cut holds them up; by the wall, so only on a
// quiet machine worth something.
void measure_checkpoints(Table& table, std::uint32_t next, std::uint32_t steps) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / "troupe-table-benchmark";
  std::filesystem::create_directories(folder);
  const auto chunk_after = [&] {
    auto chunk = std::make_shared<Chunk>();
    chunk->header = {.sequence = next, .first_step = next * steps, .steps = steps, .spec_hash = 1};
    chunk->observation = {std::vector<std::uint8_t>(steps * 17 * 4)};
    chunk->step = {std::vector<std::uint8_t>(steps * 6 * 4)};
    chunk->reward.assign(steps, 1.0F);
    ++next;
    return chunk;
  };
  for (const bool writing : {false, true}) {
    std::vector<double> inserts, samples, cuts, writes;
    std::atomic<bool> done{false};
    std::jthread writer([&] {
      for (int i = 0; writing && i < 11; ++i) {
        const auto start = Wall::now();
        const TableSnapshot cut = table.snapshot();
        cuts.push_back(microseconds_since(start));
        const auto directory = folder / std::to_string(i);
        std::filesystem::create_directories(directory);
        if (!cut.writer->write(cut, directory / "replay-0.table")) std::abort();
        writes.push_back(microseconds_since(start));
      }
      done = writing;
    });
    for (int i = 0; writing ? !done.load() : i < 20000; ++i) {
      const ChunkPtr chunk = chunk_after();
      auto start = Wall::now();
      table.try_insert(chunk);
      inserts.push_back(microseconds_since(start));
      start = Wall::now();
      static_cast<void>(table.try_sample(kBatch));
      samples.push_back(microseconds_since(start));
    }
    writer.join();
    std::printf("%s\n", writing ? "during checkpoints:" : "without checkpoints:");
    report_spread("  insert of a chunk", inserts);
    report_spread("  sample 256", samples);
    report_spread("  cut (under the lock)", cuts);
    report_spread("  cut and write", writes);
  }
  std::filesystem::remove_all(folder);
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

  drawn = {};
  measure_checkpoints(*table, static_cast<std::uint32_t>(chunks.size()), steps);
  const TableStatistics s = table->statistics();
  std::printf("%-28s %12.1f bytes an item, %.1f of them columns\n", "memory",
              static_cast<double>(s.memory_bytes) / static_cast<double>(s.held_items),
              static_cast<double>(s.bytes_held) / static_cast<double>(s.held_items));
  return 0;
}
