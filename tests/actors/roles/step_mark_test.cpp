// The count that outlives a shard: in the file before anything of it is acknowledged.
#include "actors/roles/step_mark.hpp"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "actors/roles/shard_server.hpp"
#include "tests/actors/roles/data_plane.hpp"

namespace troupe::actors {
namespace {

using namespace testing;
namespace fs = std::filesystem;

class StepMarks : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(::testing::TempDir()) / ("marks-" + std::to_string(::getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  fs::path folder_;
};

TEST_F(StepMarks, ReadsTheNewestAndNothingElse) {
  const fs::path path = StepMark::path_of(folder_, 1, 3);
  EXPECT_EQ(path.filename(), "shard-1.3.steps");
  EXPECT_FALSE(StepMark::read(path));
  const auto mark = StepMark::create(path, 5).value();
  EXPECT_EQ(StepMark::read(path), 5U);
  mark->set(std::uint64_t{1} << 40);
  EXPECT_EQ(StepMark::read(path), std::uint64_t{1} << 40);
  fs::resize_file(path, 7);
  EXPECT_FALSE(StepMark::read(path));
  EXPECT_FALSE(StepMark::create(folder_ / "missing" / "x", 0));
}

TEST_F(StepMarks, HoldEveryAcknowledgedStepAndNoOther) {
  const fs::path path = StepMark::path_of(folder_, 0, 1);
  auto server = ShardServer::open(table(), "inproc://step-marks", "").value();
  server->keep_mark(StepMark::create(path, 0).value());
  const auto actor = open_channel_client(server->data_endpoint(), "actor-0.1").value();
  std::uint64_t acknowledged = 0;
  for (std::uint64_t i = 0; i < 20; ++i) {
    const std::uint64_t sequence = i % 3 == 2 ? i - 1 : i;  // every third is sent again
    ASSERT_TRUE(actor->send(segment(episode(sequence, 4, 1))));
    std::optional<ChannelMessage> answer;
    while (!answer) {
      server->serve(milliseconds{0});
      answer = actor->receive(milliseconds{0});
    }
    acknowledged += sequence == i ? 4 : 0;
    EXPECT_EQ(StepMark::read(path), acknowledged);
  }
  EXPECT_EQ(server->table().statistics().inserted_steps, acknowledged);
}

TEST_F(StepMarks, OutliveAProcessThatIsKilled) {
  const fs::path path = StepMark::path_of(folder_, 0, 2);
  int told[2];
  ASSERT_EQ(::pipe(told), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const auto mark = StepMark::create(path, 0).value();
    for (std::uint64_t steps = 1;; ++steps) {
      mark->set(steps);
      if (::write(told[1], &steps, sizeof steps) != sizeof steps) ::_exit(1);
    }
  }
  ::close(told[1]);
  std::uint64_t known = 0;
  for (int i = 0; i < 1000; ++i)
    ASSERT_EQ(::read(told[0], &known, sizeof known), static_cast<ssize_t>(sizeof known));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  while (::read(told[0], &known, sizeof known) == static_cast<ssize_t>(sizeof known)) {
  }
  ::close(told[0]);
  const std::uint64_t marked = StepMark::read(path).value();
  EXPECT_GE(marked, known);
  EXPECT_LE(marked, known + 1);
}

}  // namespace
}  // namespace troupe::actors
