// Whole and growing files under crashes and full disks.
#include "actors/telemetry/file_io.hpp"

#include <gmock/gmock.h>

#include "envs/spec/files.hpp"
#include "tests/actors/telemetry/small_disk.hpp"
#include "tests/support/temporary_folder.hpp"

namespace troupe::actors::telemetry {
namespace {

using ::testing::HasSubstr;

TEST(FileIo, ReplacingAFileLeavesNothingElseBehind) {
  const TemporaryFolder directory;
  ASSERT_TRUE(write_file(directory / "a", "one"));
  ASSERT_TRUE(write_file(directory / "a", "two"));
  EXPECT_EQ(content_of(directory / "a"), "two");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory.path()), {}), 1);
}

TEST(FileIo, AFullDiskKeepsTheOldFileAndNamesIt) {
  const TemporaryFolder directory;
  ASSERT_TRUE(write_file(directory / "a", "old"));
  {
    const SmallDisk disk(10);
    const auto replaced = write_file(directory / "a", std::string(100, 'x'));
    ASSERT_FALSE(replaced);
    EXPECT_EQ(replaced.error().code, ErrorCode::kIo);
    EXPECT_THAT(replaced.error().message, HasSubstr((directory / "a").string()));
  }
  EXPECT_EQ(content_of(directory / "a"), "old");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory.path()), {}), 1);
}

TEST(FileIo, ARecordThatDoesNotFitIsTakenBack) {
  const TemporaryFolder directory;
  AppendFile file(directory / "log");
  ASSERT_TRUE(file.append("first\n"));
  {
    const SmallDisk disk(9);
    ASSERT_FALSE(file.append("second\n"));
  }
  EXPECT_EQ(content_of(directory / "log"), "first\n");
  ASSERT_TRUE(file.append("third\n"));
  EXPECT_EQ(content_of(directory / "log"), "first\nthird\n");
}

TEST(FileIo, HalfARecordLeftByAnotherFailureIsCutBeforeTheNext) {
  const TemporaryFolder directory;
  AppendFile file(directory / "log");
  ASSERT_TRUE(file.append("first\n"));
  write_content(directory / "log", "first\nsec");
  ASSERT_TRUE(file.append("third\n"));
  EXPECT_EQ(content_of(directory / "log"), "first\nthird\n");
}

TEST(FileIo, ADirectoryIsRefused) {
  const TemporaryFolder directory;
  EXPECT_EQ(AppendFile(directory.path()).append("x").error().code, ErrorCode::kIo);
}

}  // namespace
}  // namespace troupe::actors::telemetry
