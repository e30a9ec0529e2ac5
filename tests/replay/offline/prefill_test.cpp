// What prefilled steps mean for the ledger, the limiter and a checkpoint.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "replay/checkpoint.hpp"
#include "tests/replay/offline/offline_support.hpp"

namespace troupe::replay {
namespace {

using namespace testing;
using Kind = InsertOutcome::Kind;

// SPI 4, min_size 10: the cursor belongs between 40 - 20 and 40 + 20.
TableOptions limited() {
  TableOptions options = small_options();
  options.limiter = {.min_size = 10, .samples_per_insert = 4, .error_buffer = 20};
  return options;
}

ChunkPtr steps(std::uint64_t sequence, std::uint32_t count, std::uint32_t worker = 0) {
  return make_chunk({.worker = worker,
                     .sequence = sequence,
                     .episode = sequence,
                     .steps = count,
                     .end = EpisodeEnd::kTruncated});
}

void expect_ledger(const TableStatistics& s) {
  EXPECT_EQ(s.inserted_steps + s.prefilled_steps, s.held_steps + s.removed_steps + s.lost_steps);
  EXPECT_EQ(s.inserted_items + s.prefilled_items, s.held_items + s.removed_items + s.lost_items);
}

TEST(Prefill, GoesPastTheLimiterAndLeavesItBalanced) {
  auto table = make_table(limited());
  ASSERT_EQ(table->try_insert(steps(0, 16)).kind, Kind::kWouldBlock);  // 64 > 60
  for (std::uint64_t i = 0; i < 5; ++i)
    ASSERT_EQ(table->prefill(steps(i, 16)).kind, Kind::kAccepted);
  const TableStatistics s = table->statistics();
  EXPECT_EQ(s.held_items, 80U);
  EXPECT_EQ(s.prefilled_items, 80U);
  EXPECT_EQ(s.inserted_items, 0U);
  EXPECT_EQ(s.cursor, 40.0);  // SPI x min_size: half the band on either side
  expect_ledger(s);
  EXPECT_TRUE(table->try_sample(20));
  EXPECT_FALSE(table->try_sample(1));
  EXPECT_EQ(table->try_insert(steps(0, 10, 1)).kind, Kind::kAccepted);
  EXPECT_EQ(table->try_insert(steps(1, 1, 1)).kind, Kind::kWouldBlock);
}

TEST(Prefill, BelowMinSizeItCountsTowardsIt) {
  auto table = make_table(limited());
  ASSERT_EQ(table->prefill(steps(0, 6)).kind, Kind::kAccepted);
  EXPECT_EQ(table->statistics().cursor, 24.0);
  EXPECT_FALSE(table->try_sample(1));
  ASSERT_EQ(table->try_insert(steps(0, 4, 1)).kind, Kind::kAccepted);
  EXPECT_EQ(table->statistics().cursor, 40.0);
  EXPECT_TRUE(table->try_sample(1));
}

TEST(Prefill, MoreThanTheCapacityKeepsTheLastItemsAndTheBalance) {
  TableOptions options = limited();
  options.capacity = 10;
  auto table = make_table(options);
  for (std::uint64_t i = 0; i < 4; ++i)
    ASSERT_EQ(table->prefill(steps(i, 9)).kind, Kind::kAccepted);
  const TableStatistics s = table->statistics();
  EXPECT_EQ(s.held_items, 10U);
  EXPECT_EQ(s.removed_items, 26U);
  EXPECT_EQ(s.cursor, 40.0);
  expect_ledger(s);
}

TEST(Prefill, ACheckpointKeepsWhatWasPrefilledApart) {
  const TemporaryFolder folder;
  auto table = make_table(limited());
  ASSERT_EQ(table->prefill(steps(0, 16)).kind, Kind::kAccepted);
  ASSERT_EQ(table->try_insert(steps(0, 3, 1)).kind, Kind::kAccepted);
  ASSERT_TRUE(write_checkpoint(table->snapshot(), folder / "replay.table"));
  auto restored = make_table(limited());
  const auto notes = restore(*restored, folder / "replay.table");
  ASSERT_TRUE(notes) << notes.error().message;
  const TableStatistics s = restored->statistics();
  EXPECT_EQ(s.prefilled_steps, 16U);
  EXPECT_EQ(s.inserted_steps, 3U);
  EXPECT_EQ(s.cursor, 52.0);
  expect_ledger(s);
}

TEST(Prefill, TheSameChunkTwiceIsRefused) {
  auto table = make_table(limited());
  ASSERT_EQ(table->prefill(steps(0, 2)).kind, Kind::kAccepted);
  EXPECT_EQ(table->prefill(steps(0, 2)).kind, Kind::kRefused);
}

TEST(Prefill, PartsOfASourceAreDisjointAndWhole) {
  auto table = make_table(small_options());
  for (std::uint64_t i = 0; i < 7; ++i)
    ASSERT_EQ(table->prefill(steps(i, 5)).kind, Kind::kAccepted);
  StoredEpisodes source(table->snapshot());
  std::multiset<ItemContent> together;
  for (std::uint32_t part = 0; part < 3; ++part) {
    auto share = make_table(small_options());
    const auto report = fill(*share, source, {.part = part, .parts = 3, .keep_versions = true});
    ASSERT_TRUE(report);
    EXPECT_EQ(report->episodes, part == 0 ? 3U : 2U);
    together.merge(items_of(*share));
  }
  EXPECT_EQ(together, items_of(*table));
}

TEST(Prefill, TheColumnsOfATableAreReadFromItsFile) {
  const TemporaryFolder folder;
  ASSERT_TRUE(write_checkpoint(make_table(small_options())->snapshot(), folder / "replay.table"));
  EXPECT_EQ(read_signature(folder / "replay.table").value(), small_signature());
  write_content(folder / "other", "short");
  EXPECT_EQ(read_signature(folder / "other").error().code, ErrorCode::kCorrupt);
}

}  // namespace
}  // namespace troupe::replay
