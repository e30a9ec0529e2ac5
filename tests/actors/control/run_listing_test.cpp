// Live runs are found by name, directory and address, and dead ones are not.
#include "actors/control/run_listing.hpp"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <cstdlib>

#include "envs/spec/files.hpp"

namespace troupe::actors {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class RunListings : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "listing-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
    ::setenv("XDG_RUNTIME_DIR", root_.c_str(), 1);
  }
  void TearDown() override {
    ::unsetenv("XDG_RUNTIME_DIR");
    fs::remove_all(root_);
  }
  RunEntry entry(const std::string& parent, const std::string& name, std::uint16_t port) {
    const fs::path directory = root_ / parent / name;
    fs::create_directories(directory);
    return {.name = name,
            .directory = directory,
            .pid = 1,
            .run_id = parent + name,
            .host = "127.0.0.1",
            .port = port,
            .secret = make_secret()};
  }
  std::string error(const std::string& run) {
    const auto found = find_run(run);
    return found ? "found " + found->name : found.error().message;
  }

  fs::path root_;
};

TEST_F(RunListings, FindALiveRunByNameDirectoryAndAddress) {
  const RunEntry first = entry("a", "first", 4001), second = entry("a", "second", 4002);
  const auto one = RunListing::publish(first);
  ASSERT_TRUE(one) << one.error().message;
  EXPECT_EQ(one->note(), "");
  EXPECT_EQ(find_run("").value().name, "first");  // the only one
  const auto two = RunListing::publish(second);
  ASSERT_TRUE(two);
  EXPECT_EQ(live_runs().size(), 2U);
  for (const std::string& by :
       {std::string("second"), second.directory.string(), std::string("127.0.0.1:4002")}) {
    const auto found = find_run(by);
    ASSERT_TRUE(found) << found.error().message;
    EXPECT_EQ(found->run_id, second.run_id);
    EXPECT_EQ(found->secret, second.secret);
    EXPECT_EQ(found->port, 4002);
  }
  EXPECT_THAT(error(""), HasSubstr("several runs are alive, say which: first, second"));
  EXPECT_THAT(error("secnd"), HasSubstr("no run is called secnd; did you mean second?"));
}

TEST_F(RunListings, OfOneNameInTwoPlacesNeedADirectory) {
  const auto one = RunListing::publish(entry("a", "same", 1));
  const auto two = RunListing::publish(entry("b", "same", 2));
  EXPECT_THAT(error("same"), HasSubstr("several runs are called same"));
  EXPECT_THAT(error("same"), HasSubstr((root_ / "b" / "same").string()));
  EXPECT_EQ(find_run((root_ / "b" / "same").string()).value().port, 2);
}

TEST_F(RunListings, ForgetTheDeadAndOnlyThem) {
  const RunEntry living = entry("a", "living", 1), dead = entry("a", "dead", 2);
  const auto held = RunListing::publish(living);
  ASSERT_TRUE(held);
  fs::path left;  // what a process that was killed leaves
  for (const auto& file : fs::directory_iterator(listing_folder())) {
    left = file.path().parent_path() / "dead.json";
    fs::copy_file(file.path(), left);
  }
  fs::copy_file(living.directory / "control.json", dead.directory / "control.json");
  const auto runs = live_runs();
  ASSERT_EQ(runs.size(), 1U);
  EXPECT_EQ(runs.front().name, "living");
  EXPECT_FALSE(fs::exists(left));
  EXPECT_THAT(error(dead.directory.string()), HasSubstr("no process runs in"));
  ASSERT_TRUE(write_outcome(dead.directory, {"interrupted", "signal 2", 130}));
  EXPECT_THAT(error(dead.directory.string()),
              HasSubstr("the last run there was interrupted: signal 2"));
  EXPECT_EQ(read_outcome(dead.directory)->exit_code, 130);
  forget_outcome(dead.directory);
  EXPECT_FALSE(read_outcome(dead.directory));
}

TEST_F(RunListings, LeaveOutAFolderThatOthersMayWrite) {
  fs::create_directories(listing_folder());
  ::chmod(listing_folder().c_str(), 0777);
  const RunEntry run = entry("a", "run", 1);
  const auto listing = RunListing::publish(run);
  ASSERT_TRUE(listing);
  EXPECT_THAT(listing->note(), HasSubstr("only found by its directory"));
  EXPECT_TRUE(live_runs().empty());
  EXPECT_EQ(find_run(run.directory.string()).value().port, 1);
}

TEST_F(RunListings, HaveSecretsThatDiffer) {
  EXPECT_EQ(make_secret().size(), 32U);
  EXPECT_NE(make_secret(), make_secret());
}

}  // namespace
}  // namespace troupe::actors
