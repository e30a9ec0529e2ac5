// Whole files: replaced or left, never half.
#include "learners/files.hpp"

#include <gtest/gtest.h>

#include "tests/learners/batches.hpp"

namespace troupe::learners {
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

}  // namespace
}  // namespace troupe::learners
