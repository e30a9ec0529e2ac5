// What a table really takes, by the allocator's own count, beside the information that it holds and
// what it says itself.
#include <gtest/gtest.h>
#include <malloc.h>

#include <memory>

#include "replay/benchmark.hpp"
#include "tests/replay/support.hpp"

namespace troupe::replay {
namespace {

using namespace testing;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kOwnAllocator = true;
#else
constexpr bool kOwnAllocator = false;
#endif

double allocated() {
  const struct mallinfo2 info = ::mallinfo2();
  return static_cast<double>(info.uordblks + info.hblkhd);
}

struct Filled {
  std::unique_ptr<Table> table;
  double bytes = 0;  // that the allocator gave for it
};

// A full table after half of its items were replaced once.
Filled fill(const TableOptions& options, const Signature& signature, std::uint32_t steps,
            std::uint32_t episode, const std::vector<std::uint8_t>& rows) {
  const double before = allocated();
  Filled filled{Table::create(options, signature).value(), 0};
  const std::size_t row = signature.observation[0].bytes();
  std::uint64_t sequence = 0;
  std::uint32_t t = 0;
  std::uint64_t number = 0;
  for (std::int64_t i = 0; i < options.capacity * 3 / 2 + 100; i += steps) {
    auto chunk = std::make_shared<Chunk>();
    t += steps;
    chunk->header = {.sequence = sequence++,
                     .episode = number,
                     .first_step = t - steps,
                     .steps = steps,
                     .end = t >= episode ? EpisodeEnd::kTruncated : EpisodeEnd::kContinues,
                     .spec_hash = signature.spec_hash};
    chunk->observation.emplace_back();
    for (std::uint32_t r = 0; r < chunk->header.observation_rows(); ++r) {
      const std::size_t at = (t + r) % (rows.size() / row) * row;
      chunk->observation[0].insert(chunk->observation[0].end(),
                                   rows.begin() + static_cast<std::ptrdiff_t>(at),
                                   rows.begin() + static_cast<std::ptrdiff_t>(at + row));
    }
    chunk->step.emplace_back(steps * signature.step[0].bytes());
    chunk->reward.assign(steps, 1.0F);
    if (chunk->header.ends()) t = 0, ++number;
    EXPECT_EQ(filled.table->try_insert(chunk).kind, InsertOutcome::Kind::kAccepted);
  }
  filled.bytes = allocated() - before;
  return filled;
}

Signature states() {
  return {.observation = {{"observation", DType::kF32, {17}}},
          .step = {{"action", DType::kF32, {6}}},
          .spec_hash = 1};
}

void expect_close(const Filled& filled, double most_over_information) {
  const TableStatistics s = filled.table->statistics();
  const double items = static_cast<double>(s.held_items);
  const double information = static_cast<double>(s.bytes_held) + 16 * items;
  EXPECT_LE(filled.bytes, most_over_information * information)
      << filled.bytes / items << " bytes an item for " << information / items;
  EXPECT_NEAR(static_cast<double>(s.memory_bytes), filled.bytes, 0.02 * filled.bytes);
  ::testing::Test::RecordProperty("bytes_per_item", std::to_string(filled.bytes / items));
  ::testing::Test::RecordProperty("information_per_item", std::to_string(information / items));
}

TEST(Memory, OfStatesIsWithinTenPercentOfTheInformation) {
  if (kOwnAllocator) GTEST_SKIP() << "a sanitizer's allocator adds its own";
  TableOptions options;
  options.capacity = 200000;
  options.n_step = 5;
  const std::vector<std::uint8_t> row(17 * 4, 1);
  for (const std::uint32_t steps : {12U, 25U, 64U})  // of segments at the default band, and longer
    expect_close(fill(options, states(), steps, 1000, row), 1.10);
}

TEST(Memory, OfPrioritisedStatesCountsThePriorityToo) {
  if (kOwnAllocator) GTEST_SKIP() << "a sanitizer's allocator adds its own";
  TableOptions options;
  options.capacity = 200000;
  options.selector = kPrioritised;
  const std::vector<std::uint8_t> row(17 * 4, 1);
  const Filled filled = fill(options, states(), 12, 1000, row);
  const TableStatistics s = filled.table->statistics();
  const double information = static_cast<double>(s.bytes_held + (16 + 4) * s.held_items);
  EXPECT_LE(filled.bytes, 1.12 * information);
  EXPECT_NEAR(static_cast<double>(s.memory_bytes), filled.bytes, 0.02 * filled.bytes);
}

TEST(Memory, OfPixelsIsWithinTenPercentOfWhatIsLeftOfThem) {
  if (kOwnAllocator) GTEST_SKIP() << "a sanitizer's allocator adds its own";
  Signature signature{.observation = {{"pixels", DType::kU8, {84, 84, 3}}},
                      .step = {{"action", DType::kF32, {6}}},
                      .spec_hash = 1,
                      .frame_stack = {3}};
  const std::vector<std::uint8_t> frames = benchmark_frames(64);
  for (const Compression packing : {Compression::kZstd, Compression::kLz4, Compression::kNone}) {
    // The compressors keep their own memory, once a thread.
    std::vector<std::uint8_t> scratch;
    compress(packing, frames, scratch);
    TableOptions options;
    options.capacity = packing == Compression::kNone ? 1000 : 5000;
    options.n_step = 3;
    options.compression = {{"pixels", packing}};
    const Filled filled = fill(options, signature, 12, 1000, frames);
    expect_close(filled, 1.10);
    const TableStatistics s = filled.table->statistics();
    // A stack of three frames and the next one, in less than a quarter of one frame.
    EXPECT_TRUE(packing == Compression::kNone || s.memory_bytes < s.raw_bytes / 4);
  }
}

}  // namespace
}  // namespace troupe::replay
