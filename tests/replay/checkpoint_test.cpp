// A restored table is the saved one, down to the keys it draws next; a damaged file changes
// nothing.
#include "replay/checkpoint.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>

#include <fstream>
#include <iterator>

#include "envs/spec/random.hpp"
#include "tests/replay/support.hpp"

namespace troupe::replay {
namespace {

using namespace testing;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Kind = InsertOutcome::Kind;
namespace fs = std::filesystem;

class Checkpoint : public ::testing::Test {
 protected:
  Checkpoint()
      : folder_(fs::path(::testing::TempDir()) /
                (std::string("troupe_replay_") +
                 ::testing::UnitTest::GetInstance()->current_test_info()->name() + "_" +
                 std::to_string(::getpid()))) {
    fs::create_directories(folder_);
  }
  ~Checkpoint() override { fs::remove_all(folder_); }

  fs::path path(const char* name = "replay.table") const { return folder_ / name; }

  fs::path folder_;
};

TableOptions options() {
  TableOptions options = small_options(3, 0.9);
  options.capacity = 30;
  options.limiter = {.min_size = 5, .samples_per_insert = 4, .error_buffer = 400};
  options.seed = 11;
  return options;
}

// Chunk i of an endless made-up stream: episodes of 5 chunks, every seventh chunk is lost on the
// way.
ChunkPtr chunk(std::uint32_t i) {
  return make_chunk({.sequence = i,
                     .episode = i / 5,
                     .first_step = i % 5 * 2,
                     .steps = 2,
                     .end = i % 5 == 4 ? EpisodeEnd::kTruncated : EpisodeEnd::kContinues,
                     .parameter_version = i},
                    [i](std::uint32_t t) { return 0.25 * t + i; });
}

std::unique_ptr<Table> filled_table(const TableOptions& with = options()) {
  auto table = make_table(with);
  for (std::uint32_t i = 0; i < 28; ++i)
    EXPECT_TRUE(i % 7 == 6 || table->try_insert(chunk(i)).kind == Kind::kAccepted);
  EXPECT_TRUE(table->try_sample(50));
  return table;
}

// Feeds both tables alike and compares what they draw.
void expect_same_future(Table& one, Table& two) {
  for (std::uint32_t i = 28; i < 60; ++i) {
    EXPECT_EQ(two.try_insert(chunk(i)).kind, one.try_insert(chunk(i)).kind);
    const Batch a = take_batch(one, 8), b = take_batch(two, 8);
    ASSERT_EQ(a.versions, b.versions);
    for (std::size_t k = 0; k < 8; ++k) {
      ASSERT_EQ(a.keys[k].slot, b.keys[k].slot);
      ASSERT_EQ(a.keys[k].generation, b.keys[k].generation);
      ASSERT_EQ(a.floats("reward")[k], b.floats("reward")[k]);
      ASSERT_EQ(a.floats("discount")[k], b.floats("discount")[k]);
      ASSERT_EQ(a.floats("next_observation")[2 * k + 1], b.floats("next_observation")[2 * k + 1]);
    }
  }
}

void expect_equal(const TableStatistics& a, const TableStatistics& b) {
  EXPECT_EQ(a.inserted_steps, b.inserted_steps);
  EXPECT_EQ(a.inserted_items, b.inserted_items);
  EXPECT_EQ(a.held_items, b.held_items);
  EXPECT_EQ(a.removed_items, b.removed_items);
  EXPECT_EQ(a.dropped_steps, b.dropped_steps);
  EXPECT_EQ(a.pending_steps, b.pending_steps);
  EXPECT_EQ(a.sampled_items, b.sampled_items);
  EXPECT_EQ(a.chunks, b.chunks);
  EXPECT_EQ(a.bytes_held, b.bytes_held);
  EXPECT_EQ(a.cursor, b.cursor);
}

std::vector<char> read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write(const fs::path& path, const std::vector<char>& bytes) {
  std::ofstream(path, std::ios::binary)
      .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

TEST_F(Checkpoint, RestoresContentLimiterSamplerAndDuplicateMarks) {
  auto table = filled_table();
  const auto written = write_checkpoint(table->snapshot(), path());
  ASSERT_TRUE(written) << written.error().message;
  EXPECT_EQ(*written, fs::file_size(path()));
  TableOptions other_seed = options();
  other_seed.seed = 99;
  auto restored = make_table(other_seed);
  const auto notes = restore(*restored, path());
  ASSERT_TRUE(notes) << notes.error().message;
  EXPECT_THAT(*notes, IsEmpty());
  expect_equal(restored->statistics(), table->statistics());
  EXPECT_EQ(restored->try_insert(chunk(26)).kind, Kind::kDuplicate);
  EXPECT_EQ(table->try_insert(chunk(26)).kind, Kind::kDuplicate);
  expect_same_future(*table, *restored);
  EXPECT_THAT(fs::exists(path("replay.table.writing")), false);
}

// Feeds both tables alike, priorities too, and compares what they draw.
void expect_same_draws(Table& one, Table& two) {
  for (std::uint32_t i = 28; i < 120; ++i) {
    const auto priority = i % 3 == 0 ? std::optional(0.1 * i) : std::nullopt;
    EXPECT_EQ(two.try_insert(chunk(i), priority).kind, one.try_insert(chunk(i), priority).kind);
    const auto a = one.try_sample(3), b = two.try_sample(3);
    ASSERT_EQ(a.has_value(), b.has_value());
    if (!a) continue;
    EXPECT_EQ(a->total_mass, b->total_mass);
    EXPECT_EQ(a->min_probability, b->min_probability);
    for (std::size_t k = 0; k < 3; ++k) {
      ASSERT_EQ(a->items[k].slot, b->items[k].slot);
      ASSERT_EQ(a->items[k].generation, b->items[k].generation);
      ASSERT_EQ(a->items[k].probability, b->items[k].probability);
      const ItemKey key{0, 0, a->items[k].slot, a->items[k].generation};
      const double value = 0.01 * (i % 11);
      EXPECT_EQ(one.update_priorities(std::span(&key, 1), std::span(&value, 1)),
                two.update_priorities(std::span(&key, 1), std::span(&value, 1)));
    }
  }
  expect_equal(one.statistics(), two.statistics());
}

TEST_F(Checkpoint, GivesTheSameNextKeysWithEverySelectorAndRemover) {
  for (const std::string_view selector : selector_names())
    for (const std::string_view remover : selector_names())
      for (const std::int64_t times : {0, 2}) {
        TableOptions with = options();
        with.limiter = {.min_size = 5};
        with.selector = selector;
        with.remover = remover;
        with.max_times_sampled = times;
        auto table = make_table(with);
        for (std::uint32_t i = 0; i < 28; ++i) table->try_insert(chunk(i));
        Batch batch(table->batch_columns(), 20);
        ASSERT_TRUE(table->gather(table->try_sample(20).value(), batch));
        std::vector<double> priorities;
        for (int i = 0; i < 20; ++i) priorities.push_back(0.05 * (i % 6));
        table->update_priorities(batch.keys, priorities);
        ASSERT_TRUE(write_checkpoint(table->snapshot(), path()));
        with.seed = 99;
        auto restored = make_table(with);
        const auto notes = restore(*restored, path());
        ASSERT_TRUE(notes) << notes.error().message;
        EXPECT_THAT(*notes, IsEmpty());
        expect_same_draws(*table, *restored);
        if (HasFatalFailure()) FAIL() << selector << " and " << remover << ", " << times;
      }
}

TEST_F(Checkpoint, CountsDrawsOnUnderANewBound) {
  TableOptions with = options();
  with.limiter = {.min_size = 1};
  with.selector = kFifo;
  with.max_times_sampled = 3;
  auto table = make_table(with);
  for (std::uint32_t i = 0; i < 5; ++i) table->try_insert(chunk(i));
  const std::uint64_t held = table->statistics().held_items;
  ASSERT_EQ(held, 10U);
  ASSERT_TRUE(table->try_sample(5));  // the first item leaves, the second has had two draws
  ASSERT_TRUE(write_checkpoint(table->snapshot(), path()));

  with.max_times_sampled = 2;
  auto stricter = make_table(with);
  const auto notes = restore(*stricter, path());
  ASSERT_TRUE(notes) << notes.error().message;
  EXPECT_THAT(*notes, ::testing::Contains("max_times_sampled was 3 in the checkpoint, is now 2"));
  EXPECT_THAT(*notes, ::testing::Contains("1 items over this table's limits were removed"));
  EXPECT_EQ(stricter->statistics().held_items, held - 2);
  EXPECT_TRUE(stricter->sample_block_reason(2 * (held - 2)).empty());
  EXPECT_FALSE(stricter->sample_block_reason(2 * (held - 2) + 1).empty());

  with.max_times_sampled = 0;
  auto free = make_table(with);
  ASSERT_TRUE(restore(*free, path()));
  EXPECT_TRUE(free->sample_block_reason(1000).empty());
  ASSERT_TRUE(write_checkpoint(free->snapshot(), path("free.table")));
  with.max_times_sampled = 4;
  auto bound = make_table(with);
  ASSERT_TRUE(restore(*bound, path("free.table")));
  EXPECT_TRUE(bound->sample_block_reason(4 * (held - 1)).empty());
  EXPECT_FALSE(bound->sample_block_reason(4 * (held - 1) + 1).empty());
}

TEST_F(Checkpoint, RefusesPrioritiesOfAnotherExponent) {
  TableOptions with = options();
  with.selector = kPrioritised;
  ASSERT_TRUE(write_checkpoint(filled_table(with)->snapshot(), path()));
  with.importance_exponent = 0.7;
  with.weight_scale = WeightScale::kTable;
  with.max_chunk_steps = 99;
  const auto notes = restore(*make_table(with), path());
  ASSERT_TRUE(notes) << notes.error().message;
  EXPECT_THAT(*notes,
              ::testing::Contains("importance_exponent was 0.4 in the checkpoint, is now 0.7"));
  EXPECT_THAT(*notes,
              ::testing::Contains("weight_scale was batch in the checkpoint, is now table"));
  EXPECT_THAT(*notes,
              ::testing::Contains("max_chunk_steps was 1048576 in the checkpoint, is now 99"));
  with.priority_exponent = 0.5;
  EXPECT_THAT(restore(*make_table(with), path()).error().message,
              HasSubstr("priority_exponent 0.6; this table's is 0.5"));
  with.selector = kUniform;
  EXPECT_THAT(restore(*make_table(with), path()).error().message,
              HasSubstr("selector 'prioritised'"));
}

TEST_F(Checkpoint, IsACutThatLaterInsertsDoNotTouch) {
  auto table = filled_table();
  const TableSnapshot snapshot = table->snapshot();
  const auto before = table->statistics();
  for (std::uint32_t i = 28; i < 60; ++i) table->try_insert(chunk(i));
  ASSERT_TRUE(write_checkpoint(snapshot, path()));
  auto restored = make_table(options());
  ASSERT_TRUE(restore(*restored, path()));
  expect_equal(restored->statistics(), before);
  expect_same_future(*filled_table(), *restored);
}

TEST_F(Checkpoint, SavesAnEmptyTable) {
  ASSERT_TRUE(write_checkpoint(make_table(options())->snapshot(), path()));
  auto table = filled_table();
  ASSERT_TRUE(restore(*table, path()));
  EXPECT_EQ(table->statistics().held_items, 0U);
}

TEST_F(Checkpoint, RefusesEveryTruncationAndNamesTheFile) {
  ASSERT_TRUE(write_checkpoint(filled_table()->snapshot(), path()));
  auto table = filled_table();
  for (std::uint64_t size = fs::file_size(path()); size > 0;) {
    fs::resize_file(path(), --size);
    const auto result = restore(*table, path());
    ASSERT_FALSE(result) << size;
    EXPECT_EQ(result.error().code, ErrorCode::kCorrupt);
    ASSERT_THAT(result.error().message, HasSubstr(path().string()));
  }
  expect_same_future(*filled_table(), *table);
}

TEST_F(Checkpoint, RefusesEveryFlippedBitAndLeavesTheTableUnchanged) {
  TableOptions tiny = options();
  tiny.capacity = 5;
  auto small = make_table(tiny);
  for (std::uint32_t i = 0; i < 4; ++i) small->try_insert(chunk(i));
  ASSERT_TRUE(write_checkpoint(small->snapshot(), path()));
  const auto bytes = read(path());
  auto table = filled_table();
  const int descriptor = ::open(path().c_str(), O_WRONLY);
  ASSERT_GE(descriptor, 0);
  for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    const auto offset = static_cast<off_t>(bit / 8);
    const char flipped = static_cast<char>(bytes[bit / 8] ^ static_cast<char>(1 << bit % 8));
    ASSERT_EQ(::pwrite(descriptor, &flipped, 1, offset), 1);
    const auto result = restore(*table, path());
    ASSERT_FALSE(result) << "bit " << bit;
    ASSERT_EQ(result.error().code, ErrorCode::kCorrupt);
    ASSERT_EQ(::pwrite(descriptor, &bytes[bit / 8], 1, offset), 1);
  }
  ::close(descriptor);
  expect_same_future(*filled_table(), *table);
}

TEST_F(Checkpoint, SaysWhatTheFileIsNot) {
  auto table = filled_table();
  EXPECT_EQ(restore(*table, path("nothing")).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(restore(*table, folder_).error().code, ErrorCode::kIo);
  write(path(), std::vector<char>(100, 'x'));
  EXPECT_THAT(restore(*table, path()).error().message, HasSubstr("no replay checkpoint"));
  ASSERT_TRUE(write_checkpoint(table->snapshot(), path()));
  auto bytes = read(path());
  bytes.push_back(0);
  write(path(), bytes);
  EXPECT_THAT(restore(*table, path()).error().message, HasSubstr("truncated or was added to"));
}

TEST_F(Checkpoint, RefusesItemsThatTheTableWouldBuildOtherwise) {
  ASSERT_TRUE(write_checkpoint(filled_table()->snapshot(), path()));
  TableOptions other = options();
  other.n_step = 2;
  auto table = make_table(other);
  EXPECT_THAT(restore(*table, path()).error().message, HasSubstr("n_step 3"));
  other = options();
  other.selector = "fifo";
  EXPECT_THAT(restore(*make_table(other), path()).error().message, HasSubstr("'uniform'"));
  Signature wider = small_signature();
  wider.observation[0].shape = {3};
  EXPECT_THAT(restore(*Table::create(options(), wider).value(), path()).error().message,
              HasSubstr("other columns"));
  wider.spec_hash = 78;
  EXPECT_THAT(restore(*Table::create(options(), wider).value(), path()).error().message,
              HasSubstr("spec hash"));
}

TEST_F(Checkpoint, GoesOnUnderChangedLimitsAndSaysWhichWin) {
  auto table = filled_table();
  ASSERT_TRUE(write_checkpoint(table->snapshot(), path()));
  TableOptions other = options();
  other.capacity = 12;
  other.limiter = {.min_size = 5, .samples_per_insert = 1, .error_buffer = 10};
  auto restored = make_table(other);
  const auto notes = restore(*restored, path());
  ASSERT_TRUE(notes) << notes.error().message;
  EXPECT_THAT(*notes, ::testing::Contains("capacity was 30 in the checkpoint, is now 12"));
  EXPECT_THAT(*notes, ::testing::Contains("samples_per_insert was 4 in the checkpoint, is now 1"));
  const auto s = restored->statistics();
  EXPECT_EQ(s.held_items, 12U);
  EXPECT_EQ(s.inserted_items, s.held_items + s.removed_items);
  EXPECT_EQ(s.inserted_steps, s.held_steps + s.removed_steps);
  // Neither side waits for what was owed under the old ratio.
  EXPECT_TRUE(restored->try_insert(chunk(28)).kind == Kind::kAccepted || restored->try_sample(1));
}

// Content with right checksums can still contradict itself.
TEST_F(Checkpoint, RefusesOpenWindowsWhoseChunksDoNotFollowEachOther) {
  TableOptions with = small_options(5);
  auto table = make_table(with);
  for (std::uint32_t i = 0; i < 2; ++i)
    table->try_insert(make_chunk({.sequence = i, .first_step = 2 * i, .steps = 2}));
  const TableSnapshot good = table->snapshot();
  const auto adopt = [&](const TableSnapshot& snapshot) {
    const auto notes = make_table(with)->adopt(snapshot);
    return notes ? std::string() : notes.error().message;
  };
  EXPECT_EQ(adopt(good), "");
  TableSnapshot unlinked = good;
  unlinked.cut.chunks.edit(0).next = StoredChunk::kNone;
  EXPECT_THAT(adopt(unlinked), HasSubstr("the open windows do not fit the chunks"));
  for (const ChunkHeader& header :
       {ChunkHeader{.worker = 1, .sequence = 1, .first_step = 2, .steps = 2},
        ChunkHeader{.sequence = 1, .environment = 1, .first_step = 2, .steps = 2},
        ChunkHeader{.incarnation = 1, .sequence = 1, .first_step = 2, .steps = 2},
        ChunkHeader{.sequence = 1, .first_step = 2, .steps = 2, .end = EpisodeEnd::kTruncated}}) {
    TableSnapshot exchanged = good;
    const PackedPtr other = packed(*make_chunk(header));
    exchanged.cut.chunks.edit(1).chunk = other.get();
    EXPECT_THAT(adopt(exchanged), HasSubstr("the open windows do not fit the chunks"));
  }
}

TEST_F(Checkpoint, KeepsTheOldFileWhenWritingFails) {
  auto table = filled_table();
  ASSERT_TRUE(write_checkpoint(table->snapshot(), path()));
  const auto before = read(path());
  // A file size limit stands in for a full disk.
  rlimit unlimited{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &unlimited), 0);
  const rlimit tight{100, unlimited.rlim_max};
  ::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &tight), 0);
  const auto failed = write_checkpoint(table->snapshot(), path());
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &unlimited), 0);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, ErrorCode::kIo);
  EXPECT_THAT(failed.error().message, HasSubstr(path().string()));
  EXPECT_EQ(read(path()), before);
  EXPECT_FALSE(fs::exists(path("replay.table.writing")));
  EXPECT_EQ(write_checkpoint(table->snapshot(), folder_ / "no" / "folder").error().code,
            ErrorCode::kIo);
}

}  // namespace
}  // namespace troupe::replay
