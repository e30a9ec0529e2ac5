// A file says that its process lives, and nothing else does.
#include "actors/control/held_file.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <optional>

#include "envs/spec/files.hpp"

namespace troupe::actors {
namespace {

namespace fs = std::filesystem;

class HeldFiles : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "held-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { fs::remove_all(folder_); }
  fs::path folder_;
};

TEST_F(HeldFiles, AreHeldWhileTheirOwnerHasThemAndGoneAfterwards) {
  const fs::path path = folder_ / "file";
  EXPECT_FALSE(is_held(path));
  std::optional<HeldFile> file;
  file.emplace(HeldFile::create(path, "text").value());
  EXPECT_TRUE(is_held(path));
  EXPECT_EQ(read_text(path).value(), "text");
  struct stat found {};
  ASSERT_EQ(::stat(path.c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777, 0600U);
  file.reset();
  EXPECT_FALSE(fs::exists(path));
  EXPECT_TRUE(fs::is_empty(folder_));
}

TEST_F(HeldFiles, OfAProcessThatWasKilledStayAndAreHeldByNobody) {
  const fs::path path = folder_ / "file";
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto file = HeldFile::create(path, "text");
    [[maybe_unused]] const auto told = ::write(ready[1], "x", file ? 1 : 0);
    ::pause();
    ::_exit(0);
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  EXPECT_TRUE(is_held(path));
  ::kill(child, SIGKILL);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_TRUE(fs::exists(path));
  EXPECT_FALSE(is_held(path));
  // The next one takes its place.
  const auto next = HeldFile::create(path, "next");
  ASSERT_TRUE(next);
  EXPECT_TRUE(is_held(path));
  EXPECT_EQ(read_text(path).value(), "next");
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST_F(HeldFiles, InNoFolderSayWhy) {
  const auto file = HeldFile::create(folder_ / "none" / "file", "text");
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().code, ErrorCode::kIo);
  EXPECT_NE(file.error().message.find((folder_ / "none" / "file").string()), std::string::npos);
}

}  // namespace
}  // namespace troupe::actors
