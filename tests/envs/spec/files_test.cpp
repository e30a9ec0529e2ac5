// Whole files: replaced or left, never half.
#include "envs/spec/files.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/support/temporary_folder.hpp"

namespace troupe {
namespace {

using Bytes = std::vector<std::uint8_t>;

TEST(WriteFile, ReplacesTheFileAndLeavesNothingElse) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "file";
  ASSERT_TRUE(write_file(path, Bytes{1, 2, 3}));
  ASSERT_TRUE(write_file(path, Bytes{4, 5}));
  EXPECT_EQ(read_file(path), (Bytes{4, 5}));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
}

TEST(WriteFile, NamesThePathItCannotWrite) {
  const Result<void> written = write_file("/nowhere/at/all", Bytes{1});
  ASSERT_FALSE(written);
  EXPECT_NE(written.error().message.find("/nowhere/at/all"), std::string::npos);
}

TEST(WriteFile, KeepsTheOldFileWhenTheNewOneCannotTakeItsPlace) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "file";
  std::filesystem::create_directories(path / "inside");  // rename onto a full folder fails
  EXPECT_FALSE(write_file(path, Bytes{1}));
  EXPECT_TRUE(std::filesystem::exists(path / "inside"));
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "file.tmp"));
}

TEST(ReadFile, TellsAMissingFile) {
  const auto bytes = read_file("/nowhere/at/all");
  ASSERT_FALSE(bytes);
  EXPECT_EQ(bytes.error().code, ErrorCode::kNotFound);
}

TEST(ReadFile, TellsAMissingFileFromWhatIsNoFile) {
  const TemporaryFolder folder;
  EXPECT_EQ(read_file(folder / "none").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(read_text(folder.path()).error().code, ErrorCode::kIo);
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(read_file(folder / "pipe").error().code, ErrorCode::kIo);
}

TEST(WriteFiles, WritesEachAndStopsAtTheFirstThatFails) {
  const TemporaryFolder folder;
  ASSERT_TRUE(write_files(folder.path(), std::vector<FileContent>{{"a", {1}}, {"b", {2, 3}}}));
  EXPECT_EQ(read_file(folder / "b"), (Bytes{2, 3}));
  EXPECT_FALSE(write_files(folder.path(), std::vector<FileContent>{{"none/c", {1}}, {"d", {2}}}));
  EXPECT_FALSE(std::filesystem::exists(folder / "d"));
}

}  // namespace
}  // namespace troupe
