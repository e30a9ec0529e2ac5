// Checkpoints that share segments: nothing is written twice, every folder stands alone, and
// whatever is damaged is refused by name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include "replay/checkpoint.hpp"
#include "tests/replay/support.hpp"

namespace troupe::replay {
namespace {

using namespace testing;
namespace fs = std::filesystem;
using ::testing::HasSubstr;
using Kind = InsertOutcome::Kind;

class CheckpointWriting : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(::testing::TempDir()) /
              ("writer-" + std::to_string(::getpid()) + "-" +
               ::testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  fs::path path(int checkpoint) const {
    const fs::path folder = folder_ / ("step_" + std::to_string(checkpoint));
    fs::create_directory(folder);
    return folder / "replay-0.table";
  }
  fs::path folder_;
};

constexpr CheckpointWriterOptions kSmallSegments{.min_segment_bytes = 1000,
                                                 .max_segment_bytes = 6000};

TableOptions options(std::int64_t capacity = 200) {
  TableOptions options = small_options(3, 0.9);
  options.capacity = capacity;
  options.seed = 5;
  return options;
}

void feed(Table& table, std::uint32_t first, std::uint32_t count) {
  for (std::uint32_t i = first; i < first + count; ++i)
    ASSERT_EQ(table
                  .try_insert(make_chunk(
                      {.sequence = i,
                       .episode = i / 5,
                       .first_step = i % 5 * 2,
                       .steps = 2,
                       .end = i % 5 == 4 ? EpisodeEnd::kTruncated : EpisodeEnd::kContinues,
                       .parameter_version = i}))
                  .kind,
              Kind::kAccepted);
}

std::uint64_t bytes_written(const std::vector<CheckpointWriter::File>& files) {
  std::uint64_t bytes = 0;
  for (const auto& file : files) bytes += file.linked ? 0 : file.bytes;
  return bytes;
}

void expect_restores(const fs::path& path, Table& like, std::int64_t capacity = 200) {
  auto restored = make_table(options(capacity));
  const auto notes = restore(*restored, path);
  ASSERT_TRUE(notes) << notes.error().message;
  const auto a = restored->statistics(), b = like.statistics();
  EXPECT_EQ(a.held_items, b.held_items);
  EXPECT_EQ(a.chunks, b.chunks);
  EXPECT_EQ(a.bytes_held, b.bytes_held);
}

TEST_F(CheckpointWriting, WritesNoChunkTwice) {
  auto table = make_table(options(100000));
  CheckpointWriter writer(kSmallSegments);
  feed(*table, 0, 400);
  const auto first = writer.write(table->snapshot(), path(1));
  ASSERT_TRUE(first) << first.error().message;
  EXPECT_GT(first->size(), 3U);  // a table and segments of 6000 bytes
  std::uint64_t payload = 0;
  for (std::size_t i = 1; i < first->size(); ++i) payload += (*first)[i].bytes;
  EXPECT_GT(payload, table->statistics().bytes_held);
  feed(*table, 400, 100);
  const auto second = writer.write(table->snapshot(), path(2));
  ASSERT_TRUE(second) << second.error().message;
  std::uint64_t fresh = 0;
  for (std::size_t i = 1; i < second->size(); ++i)
    if (!(*second)[i].linked) fresh += (*second)[i].bytes;
  // A hundred chunks and the last, too small a segment of before.
  EXPECT_LT(fresh, payload / 4 + 6000);
  EXPECT_GE(std::count_if(second->begin(), second->end(), [](const auto& f) { return f.linked; }),
            static_cast<std::ptrdiff_t>(first->size()) - 2);
  for (const auto& file : *second) EXPECT_EQ(fs::file_size(file.path), file.bytes);
  expect_restores(path(2), *table, 100000);
}

// A replay of many more than 64 largest segments still links them.
TEST_F(CheckpointWriting, LinksTheSegmentsOfAVeryLargeTable) {
  auto table = make_table(options(100000));
  constexpr CheckpointWriterOptions kTiny{.min_segment_bytes = 100, .max_segment_bytes = 600};
  CheckpointWriter writer(kTiny);
  feed(*table, 0, 800);
  const auto first = writer.write(table->snapshot(), path(1));
  ASSERT_TRUE(first) << first.error().message;
  ASSERT_GT(first->size(), 80U);
  const auto second = writer.write(table->snapshot(), path(2));
  ASSERT_TRUE(second) << second.error().message;
  EXPECT_GE(std::count_if(second->begin(), second->end(), [](const auto& f) { return f.linked; }),
            static_cast<std::ptrdiff_t>(first->size()) - 3);
  expect_restores(path(2), *table, 100000);
}

TEST_F(CheckpointWriting, KeepsSmallTablesInOneFile) {
  auto table = make_table(options());
  CheckpointWriter writer;
  feed(*table, 0, 150);
  for (int i = 0; i < 3; ++i) {
    const auto files = writer.write(table->snapshot(), path(i));
    ASSERT_TRUE(files) << files.error().message;
    EXPECT_EQ(files->size(), 1U);
    expect_restores(path(i), *table);
  }
}

TEST_F(CheckpointWriting, EveryFolderStandsAloneAndSpaceIsGivenBack) {
  auto table = make_table(options());
  CheckpointWriter writer(kSmallSegments);
  std::uint32_t fed = 0;
  for (int i = 0; i < 40; ++i) {
    feed(*table, fed, 20);
    fed += 20;
    const auto files = writer.write(table->snapshot(), path(i));
    ASSERT_TRUE(files) << files.error().message;
    // 200 items of 2 steps a chunk: never more than twice what is alive, and a little.
    std::uint64_t held = 0;
    for (const auto& file : *files) held += file.bytes;
    EXPECT_LT(held, 2 * 110 * 120 + 20000);
    if (i % 7 == 3) fs::remove_all(path(i - 1).parent_path());
    if (i % 11 == 5) fs::remove_all(path(i).parent_path());  // as if this one was given up
    if (i % 11 != 5) expect_restores(path(i), *table);
  }
  // With all other folders gone.
  for (int i = 0; i < 39; ++i) fs::remove_all(path(i).parent_path());
  expect_restores(path(39), *table);
}

TEST_F(CheckpointWriting, GoesOnWithTheSegmentsOfARestoredCheckpoint) {
  auto table = make_table(options(100000));
  CheckpointWriter writer(kSmallSegments);
  feed(*table, 0, 400);
  ASSERT_TRUE(writer.write(table->snapshot(), path(1)));
  auto restored = make_table(options(100000));
  ASSERT_TRUE(restore(*restored, path(1)));
  const auto segments = read_checkpoint(path(1), small_signature())->segments;
  EXPECT_GT(segments.size(), 2U);
  CheckpointWriter next(kSmallSegments);
  next.go_on(path(2), segments);
  const auto files = next.write(restored->snapshot(), path(2));
  ASSERT_TRUE(files) << files.error().message;
  EXPECT_TRUE(std::any_of(files->begin(), files->end(), [](const auto& f) { return f.linked; }));
  EXPECT_LT(bytes_written(*files), fs::file_size(path(1)) + 6000);
  expect_restores(path(2), *table, 100000);
  // Another writer knows nothing of them, and trusts no place that it did not give.
  CheckpointWriter stranger(kSmallSegments);
  const auto all = stranger.write(restored->snapshot(), path(3));
  ASSERT_TRUE(all) << all.error().message;
  EXPECT_TRUE(std::none_of(all->begin(), all->end(), [](const auto& f) { return f.linked; }));
  expect_restores(path(3), *table, 100000);
}

// Numbers that come again, within one write and over two: no segment takes another's place.
TEST_F(CheckpointWriting, GivesNoTwoSegmentsTheSameNumber) {
  auto table = make_table(options(100000));
  std::uint32_t drawn = 0;
  CheckpointWriter writer({.min_segment_bytes = 1000, .max_segment_bytes = 6000},
                          [&] { return drawn++ / 3 % 40; });  // 0 0 0 1 1 1 2 ...
  for (int checkpoint = 1; checkpoint < 4; ++checkpoint) {
    feed(*table, static_cast<std::uint32_t>(checkpoint - 1) * 200, 200);
    const auto files = writer.write(table->snapshot(), path(checkpoint));
    ASSERT_TRUE(files) << files.error().message;
    std::set<fs::path> names;
    for (const auto& file : *files) EXPECT_TRUE(names.insert(file.path).second) << file.path;
    EXPECT_GT(files->size(), 3U);
    expect_restores(path(checkpoint), *table, 100000);
  }
}

TEST_F(CheckpointWriting, RefusesEveryTruncationAndEveryFlippedBitOfASegment) {
  auto table = make_table(options());
  CheckpointWriter writer({.min_segment_bytes = 1, .max_segment_bytes = 700});
  feed(*table, 0, 12);
  const auto files = writer.write(table->snapshot(), path(1));
  ASSERT_TRUE(files) << files.error().message;
  ASSERT_GT(files->size(), 2U);
  auto other = make_table(options());
  for (const auto& file : *files) {
    std::ifstream in(file.path, std::ios::binary);
    const std::vector<char> good{std::istreambuf_iterator<char>(in), {}};
    const auto put = [&](const std::vector<char>& bytes) {
      std::ofstream(file.path, std::ios::binary)
          .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    };
    for (std::size_t bit = 0; bit < 8 * good.size(); ++bit) {
      std::vector<char> bad = good;
      bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ static_cast<char>(1 << bit % 8));
      put(bad);
      const auto result = restore(*other, path(1));
      ASSERT_FALSE(result) << file.path << " bit " << bit;
      // A changed number in the table's file may also name a segment that is not there.
      ASSERT_THAT(result.error().message,
                  HasSubstr((file.path == path(1) ? folder_ : file.path).string()));
    }
    for (std::size_t size = 0; size < good.size(); size += 1 + size / 50) {
      put({good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size)});
      const auto result = restore(*other, path(1));
      ASSERT_FALSE(result) << file.path << " size " << size;
      ASSERT_THAT(result.error().message, HasSubstr(file.path.string()));
    }
    fs::remove(file.path);
    EXPECT_THAT(restore(*other, path(1)).error().message, HasSubstr(file.path.string()));
    put(good);
    ASSERT_TRUE(restore(*other, path(1)));
  }
}

// The table works on while cuts are written, and cuts outlive what they were taken from.
TEST_F(CheckpointWriting, CutsKeepTheirChunksWhileTheTableChangesAndGoes) {
  auto table = make_table(options(50));
  std::vector<TableSnapshot> cuts;
  std::vector<TableStatistics> states;
  for (std::uint32_t i = 0; i < 6; ++i) {
    feed(*table, 40 * i, 40);
    cuts.push_back(table->snapshot());
    states.push_back(table->statistics());
    if (i == 3) cuts[1] = {};  // one in the middle goes early
  }
  feed(*table, 240, 40);
  const auto check = [&](std::size_t i) {
    CheckpointWriter writer(kSmallSegments);
    const fs::path file = path(static_cast<int>(i));
    ASSERT_TRUE(writer.write(cuts[i], file));
    auto restored = make_table(options(50));
    const auto notes = restore(*restored, file);
    ASSERT_TRUE(notes) << notes.error().message;
    EXPECT_EQ(restored->statistics().inserted_steps, states[i].inserted_steps);
    EXPECT_EQ(restored->statistics().bytes_held, states[i].bytes_held);
  };
  check(0);
  cuts[0] = {};
  check(2);
  table.reset();
  for (const std::size_t i : {3U, 4U, 5U}) check(i);
}

TEST_F(CheckpointWriting, CutsAreWrittenBesideInsertsAndSamples) {
  auto table = make_table(options(500));
  feed(*table, 0, 50);
  // They stop at the end of the test, however it ends.
  std::jthread inserts([&](const std::stop_token& stop) {
    for (std::uint32_t i = 50; !stop.stop_requested(); ++i) feed(*table, i, 1);
  });
  std::jthread samples([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) take_batch(*table, 16);
  });
  CheckpointWriter writer(kSmallSegments);
  for (int i = 0; i < 30; ++i) {
    const TableSnapshot cut = table->snapshot();
    const auto files = writer.write(cut, path(i));
    ASSERT_TRUE(files) << files.error().message;
    auto restored = make_table(options(500));
    const auto notes = restore(*restored, path(i));
    ASSERT_TRUE(notes) << notes.error().message;
    EXPECT_EQ(restored->statistics().inserted_steps, cut.statistics.inserted_steps);
    if (i > 2) fs::remove_all(path(i - 2).parent_path());
  }
}

// Killed at any moment, the newest complete checkpoint loads: complete is what has its table's
// file.
TEST_F(CheckpointWriting, SurvivesBeingKilledInALoop) {
  for (int round = 0; round < 12; ++round) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      auto table = make_table(options(2000));
      CheckpointWriter writer({.min_segment_bytes = 20000, .max_segment_bytes = 60000});
      for (std::uint32_t i = 0;; ++i) {
        for (std::uint32_t chunk = 50 * i; chunk < 50 * (i + 1); ++chunk)
          table->try_insert(make_chunk({.sequence = chunk, .first_step = 2 * chunk, .steps = 2}));
        const int name = 1000 * round + static_cast<int>(i);
        if (!writer.write(table->snapshot(), path(name))) ::_exit(1);
        if (i > 3) fs::remove_all(path(name - 3).parent_path());
      }
    }
    ::usleep(static_cast<useconds_t>(20000 + 17000 * round));
    ::kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status));
  }
  int loaded = 0;
  for (const auto& entry : fs::directory_iterator(folder_)) {
    const fs::path file = entry.path() / "replay-0.table";
    if (!fs::exists(file)) continue;
    auto restored = make_table(options(2000));
    const auto notes = restore(*restored, file);
    ASSERT_TRUE(notes) << notes.error().message;
    ++loaded;
  }
  EXPECT_GT(loaded, 0);
}

// Positions and sizes are 64 bits wide wherever a file can be larger: a sparse file stands in for
// one of 5 GiB.
TEST_F(CheckpointWriting, ReadsSegmentSizesBeyondFourGibibytes) {
  auto table = make_table(options());
  CheckpointWriter writer({.min_segment_bytes = 1});
  feed(*table, 0, 12);
  const auto files = writer.write(table->snapshot(), path(1));
  ASSERT_TRUE(files) << files.error().message;
  ASSERT_EQ(files->size(), 2U);
  const std::uint64_t large = std::uint64_t{5} << 30;
  fs::resize_file((*files)[1].path, large);
  auto other = make_table(options());
  EXPECT_THAT(restore(*other, path(1)).error().message, HasSubstr(std::to_string(large)));
  fs::resize_file((*files)[1].path, (*files)[1].bytes);
  EXPECT_TRUE(restore(*other, path(1)));
  fs::resize_file(path(1), large);
  EXPECT_THAT(restore(*other, path(1)).error().message, HasSubstr(std::to_string(large)));
}

}  // namespace
}  // namespace troupe::replay
