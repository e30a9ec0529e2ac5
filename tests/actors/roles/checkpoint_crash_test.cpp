// A run's checkpoints with a replay in them: killed while writing, and damaged on the disk.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "actors/roles/checkpoint_store.hpp"
#include "envs/spec/files.hpp"
#include "replay/checkpoint.hpp"
#include "tests/replay/support.hpp"

namespace troupe::actors {
namespace {

namespace fs = std::filesystem;
using replay::testing::make_chunk;
using replay::testing::make_table;
using replay::testing::small_options;
using testing::HasSubstr;

constexpr const char* kTable = "replay-0.table";

class CheckpointCrash : public testing::Test {
 protected:
  CheckpointCrash() {
    root_ = fs::path(testing::TempDir()) /
            (std::to_string(::getpid()) +
             testing::UnitTest::GetInstance()->current_test_info()->name()) /
            "checkpoints";
    fs::remove_all(root_.parent_path());
    fs::create_directories(root_.parent_path());
  }
  ~CheckpointCrash() override { fs::remove_all(root_.parent_path()); }

  CheckpointStore open() {
    auto store =
        CheckpointStore::open(root_, 3, [this](const std::string& line) { log_.push_back(line); });
    EXPECT_TRUE(store);
    return std::move(*store);
  }
  std::optional<CheckpointInfo> newest(const CheckpointStore& store) {
    return store.newest_valid([this](const std::string& line) { log_.push_back(line); });
  }

  fs::path root_;
  std::vector<std::string> log_;
};

replay::TableOptions options() {
  replay::TableOptions options = small_options(3);
  options.capacity = 3000;
  return options;
}

// Goes on where the table's steps end.
void feed(replay::Table& table, std::uint32_t chunks) {
  const auto next = static_cast<std::uint32_t>(table.statistics().inserted_steps / 2);
  for (std::uint32_t i = next; i < next + chunks; ++i)
    table.try_insert(make_chunk({.sequence = i, .first_step = 2 * i, .steps = 2}));
}

bool save(CheckpointStore& store, std::uint64_t id, replay::Table& table) {
  const std::uint64_t steps = table.statistics().inserted_steps;
  const auto directory = store.begin(id, steps);
  if (!directory) return false;
  // Small segments, so that checkpoints share some; the writer lives as long as the process.
  static replay::CheckpointWriter writer({.min_segment_bytes = 20000, .max_segment_bytes = 40000});
  const auto files = writer.write(table.snapshot(), *directory / kTable);
  if (!files) return false;
  std::vector<FilePart> parts;
  for (const auto& file : *files)
    parts.push_back({file.path.filename().string(), file.bytes, file.crc32c});
  store.add_part(id, parts);
  return store.commit(id, steps / 10, R"({"n":1})").has_value();
}

TEST_F(CheckpointCrash, KilledInALoopWhileSavingTheNewestCompleteOneLoads) {
  std::uint64_t steps = 0;
  for (int round = 0; round < 10; ++round) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      CheckpointStore store = open();
      auto table = make_table(options());
      if (const auto info = newest(store))
        if (!replay::restore(*table, info->directory / kTable)) ::_exit(1);
      for (std::uint64_t id = 1;; ++id) {
        feed(*table, 100);
        if (!save(store, id, *table)) ::_exit(2);
        ::usleep(id % 3 == 0 ? 100000 : 0);
      }
    }
    ::usleep(static_cast<useconds_t>(150000 + 23000 * round));
    ::kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "round " << round << ", exit " << WEXITSTATUS(status);
    CheckpointStore store = open();
    const auto info = newest(store);
    if (!info) continue;  // killed before the very first was complete
    auto table = make_table(options());
    const auto restored = replay::restore(*table, info->directory / kTable);
    ASSERT_TRUE(restored) << restored.error().message;
    EXPECT_EQ(table->statistics().inserted_steps, info->actor_steps);
    EXPECT_GE(info->actor_steps, steps);
    steps = info->actor_steps;
  }
  EXPECT_GT(steps, 0U);
}

// Of a small replay no file is shared, so that whatever is damaged the older one is whole.
TEST_F(CheckpointCrash, DamageOfASmallTableFallsBackToTheOlderOneAndNamesTheFile) {
  CheckpointStore store = open();
  auto table = make_table(options());
  for (std::uint64_t id = 1; id <= 2; ++id) {
    feed(*table, 3);
    ASSERT_TRUE(save(store, id, *table));
  }
  const auto newer = newest(store);
  ASSERT_TRUE(newer);
  const fs::path file = newer->directory / kTable;
  const auto good = read_file(file);
  ASSERT_TRUE(good);
  const auto put = [&](std::span<const std::uint8_t> bytes) {
    std::ofstream(file, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
  };
  const auto expect_older = [&](const std::string& what, bool restores) {
    log_.clear();
    const auto found = newest(store);
    ASSERT_TRUE(found) << what;
    ASSERT_EQ(found->actor_steps, 6U) << what;
    ASSERT_THAT(log_, testing::Contains(HasSubstr(file.string()))) << what;
    if (!restores) return;
    auto older = make_table(options());
    ASSERT_TRUE(replay::restore(*older, found->directory / kTable)) << what;
  };
  for (std::size_t bit = 0; bit < 8 * good->size(); bit += 11) {
    auto bad = *good;
    bad[bit / 8] ^= static_cast<std::uint8_t>(1U << bit % 8);
    put(bad);
    expect_older("bit " + std::to_string(bit), bit % 50 == 0);
    if (HasFatalFailure()) return;
  }
  for (std::size_t size = 0; size < good->size(); size += 31) {
    put(std::span(*good).first(size));
    expect_older("size " + std::to_string(size), size == 0);
    if (HasFatalFailure()) return;
  }
  put(*good);
  EXPECT_EQ(newest(store)->actor_steps, 12U);
}

}  // namespace
}  // namespace troupe::actors
