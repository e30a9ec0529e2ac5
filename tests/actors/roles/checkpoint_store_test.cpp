// Complete, incomplete and damaged checkpoints of a run directory.
#include "actors/roles/checkpoint_store.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "envs/spec/files.hpp"

namespace troupe::actors {
namespace {

namespace fs = std::filesystem;

class CheckpointStoreTest : public testing::Test {
 protected:
  CheckpointStoreTest() {
    root_ = fs::path(testing::TempDir()) /
            testing::UnitTest::GetInstance()->current_test_info()->name() / "checkpoints";
    fs::remove_all(root_.parent_path());
    fs::create_directories(root_.parent_path());
  }
  CheckpointStore open(std::int64_t keep = 3) {
    auto store = CheckpointStore::open(root_, keep,
                                       [this](const std::string& line) { log_.push_back(line); });
    EXPECT_TRUE(store);
    return std::move(*store);
  }
  std::optional<CheckpointInfo> newest(const CheckpointStore& store) {
    return store.newest_valid([this](const std::string& line) { log_.push_back(line); });
  }
  // A complete checkpoint with one part holding `text`.
  CheckpointInfo save(CheckpointStore& store, std::uint64_t steps,
                      const std::string& text = "content") {
    const std::uint64_t id = next_++;
    const auto directory = store.begin(id, steps);
    EXPECT_TRUE(directory);
    const FileContent part{"part", {text.begin(), text.end()}};
    std::vector<FilePart> parts;
    EXPECT_TRUE(write_parts({&part, 1}, *directory, parts));
    store.add_part(id, parts);
    auto info = store.commit(id, steps / 10, R"({"n":1})");
    EXPECT_TRUE(info);
    return *info;
  }

  fs::path root_;
  std::vector<std::string> log_;
  std::uint64_t next_ = 1;
};

TEST_F(CheckpointStoreTest, FindsTheNewestOfTheCompleteOnes) {
  auto store = open();
  save(store, 1000);
  const auto second = save(store, 2000);
  ASSERT_TRUE(store.begin(9, 3000));  // never committed
  auto reopened = open();
  const auto found = newest(reopened);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->directory, second.directory);
  EXPECT_EQ(found->actor_steps, 2000U);
  EXPECT_EQ(found->version, 200U);
  EXPECT_EQ(found->state_json, R"({"n":1})");
  EXPECT_EQ(fs::read_symlink(root_ / "latest"), "step_000002000");
  EXPECT_FALSE(fs::exists(root_ / "step_000003000"));
  EXPECT_THAT(log_, testing::ElementsAre(testing::HasSubstr("step_000003000")));
}

TEST_F(CheckpointStoreTest, OneThatIsBeingReadStays) {
  auto store = open(1);
  const auto first = save(store, 1000);
  store.hold("learner-0");
  save(store, 2000);
  save(store, 3000);
  EXPECT_TRUE(fs::exists(first.directory));
  EXPECT_FALSE(fs::exists(root_ / "step_000002000"));
  store.release("learner-0");
  save(store, 4000);
  EXPECT_FALSE(fs::exists(first.directory));
  EXPECT_TRUE(fs::exists(root_ / "step_000004000"));
}

TEST_F(CheckpointStoreTest, OneThatIsNewerInTimeWinsOverOneWithMoreSteps) {
  auto store = open();
  save(store, 5000);
  const auto later = save(store, 4000);  // after a shard was lost
  EXPECT_EQ(newest(store)->directory, later.directory);
  const auto again = save(store, 4000);
  EXPECT_NE(again.directory, later.directory);
  EXPECT_EQ(newest(open())->directory, again.directory);
}

TEST_F(CheckpointStoreTest, EveryTruncationAndBitFlipFallsBackToAnOlderOneAndNamesTheFile) {
  auto store = open();
  const auto older = save(store, 1000);
  const auto newer = save(store, 2000, "some bytes");
  for (const char* name : {"part", "state.json", "manifest.json"}) {
    const fs::path file = newer.directory / name;
    const auto bytes = read_file(file);
    ASSERT_TRUE(bytes);
    const auto put = [&](std::span<const std::uint8_t> damaged) {  // without waiting for the disk
      std::ofstream(file, std::ios::binary)
          .write(reinterpret_cast<const char*>(damaged.data()),
                 static_cast<std::streamsize>(damaged.size()));
    };
    for (std::size_t bit = 0; bit < 8 * bytes->size(); ++bit) {
      auto damaged = *bytes;
      damaged[bit / 8] ^= static_cast<std::uint8_t>(1U << bit % 8);
      put(damaged);
      log_.clear();
      const auto found = newest(store);
      ASSERT_TRUE(found);
      ASSERT_EQ(found->directory, older.directory) << name << " bit " << bit;
      ASSERT_THAT(log_, testing::Contains(testing::HasSubstr(file.string())));
    }
    for (std::size_t size = 0; size < bytes->size(); ++size) {
      put(std::span(*bytes).first(size));
      EXPECT_EQ(newest(store)->directory, older.directory) << name << " " << size;
    }
    ASSERT_TRUE(write_file(file, *bytes));
  }
  EXPECT_EQ(newest(store)->directory, newer.directory);
}

TEST_F(CheckpointStoreTest, KeepsOnlySoMany) {
  auto store = open(2);
  for (const std::uint64_t steps : {1, 2, 3, 4}) save(store, steps);
  EXPECT_FALSE(fs::exists(root_ / "step_000000002"));
  EXPECT_TRUE(fs::exists(root_ / "step_000000003"));
  EXPECT_TRUE(fs::exists(root_ / "step_000000004"));
}

TEST_F(CheckpointStoreTest, AnAbandonedOneLeavesNothing) {
  auto store = open();
  const auto directory = store.begin(1, 10);
  ASSERT_TRUE(directory);
  store.abandon(1);
  EXPECT_FALSE(fs::exists(*directory));
  EXPECT_FALSE(newest(store));
}

TEST_F(CheckpointStoreTest, SaysWhereItCannotWrite) {
  std::ofstream(root_) << "a file in the way";
  const auto store = CheckpointStore::open(root_, 3, [](const std::string&) {});
  ASSERT_FALSE(store);
  EXPECT_THAT(store.error().message, testing::HasSubstr(root_.string()));
}

}  // namespace
}  // namespace troupe::actors
