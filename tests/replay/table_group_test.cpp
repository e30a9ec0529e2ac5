// Several tables over the same steps: one chunk in memory, all or none take it, and what one table
// removes the others keep.
#include "replay/table_group.hpp"

#include <gmock/gmock.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <set>
#include <thread>

#include "replay/checkpoint.hpp"
#include "tests/replay/support.hpp"

namespace troupe::replay {
namespace {

using namespace testing;
namespace fs = std::filesystem;
using std::chrono::milliseconds;
using ::testing::HasSubstr;
using Kind = InsertOutcome::Kind;

TableOptions sequences(std::int64_t capacity = 1000) {
  TableOptions options = small_options();
  options.capacity = capacity;
  options.items = {.kind = ItemShape::Kind::kSequence, .length = 6, .period = 3};
  return options;
}

struct Pair {
  explicit Pair(const TableOptions& a = small_options(3), const TableOptions& b = sequences())
      : storage(ChunkStorage::create().value()),
        first(Table::create(a, small_signature(), storage).value()),
        second(Table::create(b, small_signature(), storage).value()),
        both(TableGroup::of({second.get(), first.get()}).value()) {}

  std::shared_ptr<ChunkStorage> storage;
  std::unique_ptr<Table> first, second;
  TableGroup both;
};

// The i-th chunk of a worker whose episodes have 20 steps in chunks of 10.
ChunkPtr chunk(std::uint32_t i) {
  return make_chunk({.sequence = i,
                     .episode = i / 2,
                     .first_step = i % 2 * 10,
                     .steps = 10,
                     .end = i % 2 == 1 ? EpisodeEnd::kTerminated : EpisodeEnd::kContinues});
}

// Of every chunk of a table, in memory.
std::uint64_t chunk_memory(const Table& table) { return table.statistics().chunk_memory_bytes; }

TEST(TableGroup, StoresEachStepOnceForTablesOfDifferentShapes) {
  Pair pair;
  for (std::uint32_t i = 0; i < 40; ++i)
    ASSERT_EQ(pair.both.try_insert(chunk(i)).kind, Kind::kAccepted);
  const TableStatistics a = pair.first->statistics(), b = pair.second->statistics();
  EXPECT_EQ(a.held_steps, 400U);
  EXPECT_EQ(b.held_steps, 400U);
  EXPECT_NE(a.held_items, b.held_items);
  const ChunkStorage::Totals totals = pair.storage->totals();
  EXPECT_EQ(totals.chunks, 40U);
  EXPECT_EQ(totals.bytes, a.bytes_held);
  EXPECT_EQ(totals.bytes, b.bytes_held);
  EXPECT_EQ(totals.memory_bytes, a.chunk_memory_bytes);
  EXPECT_EQ(totals.memory_bytes, b.chunk_memory_bytes);
  // Not equal contents but the same memory.
  const SampledItems from_first = pair.first->try_sample(500).value();
  const SampledItems from_second = pair.second->try_sample(500).value();
  std::set<const PackedChunk*> chunks;
  for (const auto* items : {&from_first, &from_second})
    for (const SampledItem& item : items->items) chunks.insert(item.chunk.get());
  EXPECT_LE(chunks.size(), 40U);
}

TEST(TableGroup, GivesEachTableTheItemsThatItWouldHaveAlone) {
  Pair pair;
  auto alone = make_table(small_options(3)), spans = make_table(sequences());
  for (std::uint32_t i = 0; i < 11; ++i) {
    const std::uint64_t items =
        alone->try_insert(chunk(i)).items + spans->try_insert(chunk(i)).items;
    EXPECT_EQ(pair.both.try_insert(chunk(i)).items, items);
  }
  for (const auto& [shared, own] :
       {std::pair{pair.first.get(), alone.get()}, std::pair{pair.second.get(), spans.get()}}) {
    const Batch a = take_batch(*shared, 64), b = take_batch(*own, 64);
    for (int i = 0; i < static_cast<int>(a.columns().size()); ++i)
      EXPECT_TRUE(std::ranges::equal(a.bytes(i), b.bytes(i)))
          << a.columns()[static_cast<std::size_t>(i)].name;
  }
}

TEST(TableGroup, HoldsTheChunkBackFromAllWhileOneLimiterDoes) {
  TableOptions full = queue_options(small_options(), 5);
  Pair pair(small_options(), full);
  const auto step = [](std::uint32_t i) {
    return make_chunk({.sequence = i, .episode = i, .steps = 1, .end = EpisodeEnd::kTerminated});
  };
  for (std::uint32_t i = 0; i < 5; ++i)
    ASSERT_EQ(pair.both.try_insert(step(i)).kind, Kind::kAccepted);
  for (int again = 0; again < 3; ++again) {
    const InsertOutcome held = pair.both.try_insert(step(5));
    EXPECT_EQ(held.kind, Kind::kWouldBlock);
    EXPECT_THAT(held.error.message, HasSubstr("queue"));
  }
  EXPECT_EQ(pair.first->statistics().held_items, 5U);
  EXPECT_EQ(pair.second->statistics().held_items, 5U);
  EXPECT_EQ(pair.first->statistics().waiting_items, 0U) << "it is the other's limiter";
  EXPECT_EQ(pair.second->statistics().waiting_items, 1U);
  EXPECT_EQ(pair.first->statistics().duplicate_chunks, 0U);

  ASSERT_TRUE(pair.second->try_sample(1));
  EXPECT_EQ(pair.both.try_insert(step(5)).kind, Kind::kAccepted);
  EXPECT_EQ(pair.first->statistics().held_items, 6U);
  EXPECT_EQ(pair.second->statistics().held_items, 5U);
}

TEST(TableGroup, AWaitingInsertGoesOnOnceTheLastLimiterLetsIt) {
  Pair pair(queue_options(small_options(), 1), queue_options(small_options(), 1));
  const auto step = [](std::uint32_t i) {
    return make_chunk({.sequence = i, .episode = i, .steps = 1, .end = EpisodeEnd::kTerminated});
  };
  ASSERT_EQ(pair.both.try_insert(step(0)).kind, Kind::kAccepted);
  EXPECT_EQ(pair.both.insert(step(1), milliseconds{1}).kind, Kind::kWouldBlock);
  InsertOutcome outcome;
  std::thread writer([&] { outcome = pair.both.insert(step(1), std::chrono::hours{1}); });
  ASSERT_TRUE(pair.first->sample(1, std::chrono::hours{1}));
  ASSERT_TRUE(pair.second->sample(1, std::chrono::hours{1}));
  writer.join();
  EXPECT_EQ(outcome.kind, Kind::kAccepted);
  EXPECT_EQ(outcome.items, 2U);
}

TEST(TableGroup, AClosedTableEndsTheWaitAtAnother) {
  Pair pair(queue_options(small_options(), 1), small_options());
  const auto step = [](std::uint32_t i) {
    return make_chunk({.sequence = i, .episode = i, .steps = 1, .end = EpisodeEnd::kTerminated});
  };
  ASSERT_EQ(pair.both.try_insert(step(0)).kind, Kind::kAccepted);
  InsertOutcome outcome;
  std::thread writer([&] { outcome = pair.both.insert(step(1), std::chrono::hours{1}); });
  pair.second->close();
  pair.first->close();
  writer.join();
  EXPECT_EQ(outcome.kind, Kind::kRefused);
  EXPECT_EQ(pair.first->statistics().inserted_items, 1U);
}

TEST(TableGroup, KnowsARepeatedChunkInEveryTable) {
  Pair pair;
  for (std::uint32_t i = 0; i < 4; ++i)
    ASSERT_EQ(pair.both.try_insert(chunk(i)).kind, Kind::kAccepted);
  const std::uint64_t held = pair.storage->totals().bytes;
  EXPECT_EQ(pair.both.try_insert(chunk(2)).kind, Kind::kDuplicate);
  for (const Table* table : {pair.first.get(), pair.second.get()}) {
    EXPECT_EQ(table->statistics().duplicate_chunks, 1U);
    EXPECT_EQ(table->statistics().inserted_steps, 40U);
  }
  EXPECT_EQ(pair.storage->totals().bytes, held);
}

TEST(TableGroup, BringsTheTableThatLacksAChunkUpToTheOther) {
  Pair pair;
  ASSERT_EQ(pair.first->try_insert(chunk(0)).kind,
            Kind::kAccepted);  // before the other was restored
  const InsertOutcome outcome = pair.both.try_insert(chunk(0));
  EXPECT_EQ(outcome.kind, Kind::kAccepted);
  EXPECT_EQ(pair.first->statistics().inserted_steps, 10U);
  EXPECT_EQ(pair.first->statistics().duplicate_chunks, 1U);
  EXPECT_EQ(pair.second->statistics().inserted_steps, 10U);
}

TEST(TableGroup, RefusesForAllWhatOneRefuses) {
  TableOptions short_chunks = sequences();
  short_chunks.max_chunk_steps = 5;
  Pair pair(small_options(), short_chunks);
  EXPECT_EQ(pair.both.try_insert(chunk(0)).kind, Kind::kRefused);
  auto bad = make_chunk({.steps = 3});
  bad->reward[1] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(pair.both.try_insert(bad).error.code, ErrorCode::kNotFinite);
  EXPECT_EQ(pair.first->statistics().held_steps, 0U);
  EXPECT_EQ(pair.second->statistics().held_steps, 0U);
  EXPECT_EQ(pair.storage->totals().chunks, 0U);
  EXPECT_EQ(pair.storage->totals().memory_bytes, 0U);
}

TEST(TableGroup, KeepsAChunkThatOnlyOneTableHasRemoved) {
  TableOptions few = small_options(3);
  few.capacity = 15;
  Pair pair(few);
  for (std::uint32_t i = 0; i < 40; ++i)
    ASSERT_EQ(pair.both.try_insert(chunk(i)).kind, Kind::kAccepted);
  EXPECT_LE(pair.first->statistics().chunks, 3U);
  EXPECT_EQ(pair.second->statistics().chunks, 40U);
  EXPECT_EQ(pair.storage->totals().chunks, 40U);
  EXPECT_EQ(pair.storage->totals().memory_bytes, chunk_memory(*pair.second));
  const Batch batch = take_batch(*pair.second, 256);
  const std::set<float> episodes = [&] {
    const auto values = batch.floats("observation");
    std::set<float> seen;
    for (std::size_t i = 0; i < values.size(); i += 2) seen.insert(values[i]);
    return seen;
  }();
  EXPECT_TRUE(episodes.contains(1)) << "which the other table removed long ago";

  pair.second.reset();
  EXPECT_EQ(pair.storage->totals().chunks, pair.first->statistics().chunks);
  EXPECT_EQ(pair.storage->totals().memory_bytes, chunk_memory(*pair.first));
  pair.first.reset();
  EXPECT_EQ(pair.storage->totals().chunks, 0U);
  EXPECT_EQ(pair.storage->totals().memory_bytes, 0U);
}

TEST(TableGroup, RefusesTablesThatCannotShare) {
  Pair pair;
  EXPECT_THAT(TableGroup::of({}).error().message, HasSubstr("none"));
  EXPECT_THAT(TableGroup::of({pair.first.get(), pair.first.get()}).error().message,
              HasSubstr("twice"));
  auto elsewhere = make_table(small_options());
  EXPECT_THAT(TableGroup::of({pair.first.get(), elsewhere.get()}).error().message,
              HasSubstr("storage"));
  TableOptions packs = small_options();
  packs.compression["observation"] = Compression::kZstd;
  auto packed = Table::create(packs, small_signature(), pair.storage).value();
  EXPECT_THAT(TableGroup::of({pair.first.get(), packed.get()}).error().message, HasSubstr("pack"));
  Signature wide = small_signature();
  wide.observation[0].shape = {3};
  auto other = Table::create(small_options(), wide, pair.storage).value();
  EXPECT_THAT(TableGroup::of({pair.first.get(), other.get()}).error().message,
              HasSubstr("columns"));
}

// Threads that feed both, each alone, sample and save: no deadlock, every step once in each table.
TEST(TableGroup, StandsThreadsThatFeedAndDrawFromAllSidesAtOnce) {
  Pair pair;
  std::vector<std::thread> threads;
  for (std::uint32_t worker = 0; worker < 3; ++worker)
    threads.emplace_back([&, worker] {
      const auto one = TableGroup::of({pair.first.get(), pair.second.get()}).value();
      for (std::uint32_t i = 0; i < 200; ++i) {
        ChunkHeader header = chunk(i)->header;
        header.worker = worker;
        const ChunkPtr next = make_chunk(header);
        if (worker == 0)
          pair.first->try_insert(next);
        else
          one.try_insert(next);
        if (i % 50 == 0) (void)pair.second->snapshot();
        (void)pair.first->try_sample(4);
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(pair.first->statistics().inserted_steps, 6000U);
  EXPECT_EQ(pair.second->statistics().inserted_steps, 4000U);
  pair.first.reset();
  pair.second.reset();
  EXPECT_EQ(pair.storage->totals().bytes, 0U);
}

class GroupCheckpoints : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(::testing::TempDir()) / ("group-" + std::to_string(::getpid()));
    fs::remove_all(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  fs::path path(int checkpoint, const char* table) const {
    const fs::path folder = folder_ / std::to_string(checkpoint);
    fs::create_directories(folder);
    return folder / (std::string(table) + ".table");
  }
  fs::path folder_;
};

// Files that are written, not linked: the table's own is always one.
std::size_t written(const std::vector<CheckpointWriter::File>& files) {
  return static_cast<std::size_t>(
      std::count_if(files.begin(), files.end(), [](const auto& file) { return !file.linked; }));
}

TEST_F(GroupCheckpoints, WriteASharedChunkOnceAndLinkItEverAfter) {
  TableOptions all = small_options(3);
  all.capacity = 100000;
  Pair pair(all, sequences(100000));
  CheckpointWriter writer({.min_segment_bytes = 1000, .max_segment_bytes = 100000});
  std::uint32_t next = 0;
  const auto feed = [&](std::uint32_t count) {
    for (; count > 0; --count) ASSERT_EQ(pair.both.try_insert(chunk(next++)).kind, Kind::kAccepted);
  };
  feed(200);
  const auto save = [&](int checkpoint) {
    auto a = writer.write(pair.first->snapshot(), path(checkpoint, "transitions"));
    auto b = writer.write(pair.second->snapshot(), path(checkpoint, "sequences"));
    EXPECT_TRUE(a && b);
    return std::pair{*std::move(a), *std::move(b)};
  };
  const auto [first, second] = save(1);
  EXPECT_EQ(written(first), 2U);
  EXPECT_EQ(written(second), 1U) << "its chunks stand in the segment of the other table";
  EXPECT_EQ(second.size(), 2U);
  for (int checkpoint = 2; checkpoint < 5; ++checkpoint) {
    feed(1);  // too little for a segment of its own
    const auto [a, b] = save(checkpoint);
    EXPECT_EQ(written(a), 1U);
    EXPECT_EQ(written(b), 1U);
  }
  fs::remove_all(folder_ / "1");
  auto restored = make_table(sequences());
  ASSERT_TRUE(restore(*restored, path(4, "sequences")));
  EXPECT_EQ(restored->statistics().held_steps, pair.second->statistics().held_steps);
}

TEST_F(GroupCheckpoints, ShareTheirChunksAgainAfterARestore) {
  const fs::path a = path(1, "transitions"), b = path(1, "sequences");
  {
    Pair pair;
    for (std::uint32_t i = 0; i < 40; ++i)
      ASSERT_EQ(pair.both.try_insert(chunk(i)).kind, Kind::kAccepted);
    ASSERT_TRUE(write_checkpoint(pair.first->snapshot(), a));
    ASSERT_EQ(pair.both.try_insert(chunk(40)).kind, Kind::kAccepted);
    ASSERT_TRUE(write_checkpoint(pair.second->snapshot(), b));
  }
  Pair pair;
  ASSERT_TRUE(restore(*pair.first, a));
  auto snapshot = read_checkpoint(b, small_signature(), pair.storage.get());
  ASSERT_TRUE(snapshot);
  EXPECT_EQ(share_chunks(*snapshot, pair.first->snapshot()), 40U);
  ASSERT_TRUE(pair.second->adopt(*std::move(snapshot)));
  EXPECT_EQ(pair.storage->totals().chunks, 41U);
  EXPECT_EQ(pair.storage->totals().memory_bytes, chunk_memory(*pair.second));
  // The writer sends again what was not acknowledged; each table takes what it lacks.
  EXPECT_EQ(pair.both.try_insert(chunk(40)).kind, Kind::kAccepted);
  EXPECT_EQ(pair.first->statistics().held_steps, 410U);
  EXPECT_EQ(pair.second->statistics().held_steps, 410U);
  EXPECT_EQ(pair.second->statistics().duplicate_chunks, 1U);
}

TEST_F(GroupCheckpoints, DoNotTakeOneWorkersChunkForAnothersOfTheSameName) {
  auto one = make_table(small_options()), other = make_table(small_options());
  ASSERT_EQ(one->try_insert(chunk(0)).kind, Kind::kAccepted);
  ASSERT_EQ(other->try_insert(make_chunk(chunk(0)->header, [](std::uint32_t) { return 2.0; })).kind,
            Kind::kAccepted);
  TableSnapshot snapshot = one->snapshot();
  EXPECT_EQ(share_chunks(snapshot, other->snapshot()), 0U);
}

}  // namespace
}  // namespace troupe::replay
