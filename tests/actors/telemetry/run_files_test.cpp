// A run directory's files together: full disks, resumes, and the small records.
#include "actors/telemetry/run_files.hpp"

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/actors/telemetry/small_disk.hpp"
#include "tests/support/python.hpp"
#include "tests/support/temporary_folder.hpp"

namespace troupe::actors::telemetry {
namespace {

using ::testing::HasSubstr;

MetricsRow row(std::int64_t steps) {
  return {
      .time = 1, .elapsed = 1, .actor_steps = steps, .learner_updates = 0, .values = {{"a", 1}}};
}

TEST(RunFiles, RowsWaitWhileTheDiskIsFullAndNoneIsLost) {
  const TemporaryFolder directory;
  auto files = RunFiles::open(directory.path(), 0);
  ASSERT_TRUE(files) << files.error().message;
  ASSERT_TRUE(files->append(row(1)));
  {
    const SmallDisk disk(64);
    for (int i = 2; i < 10; ++i) {
      const auto written = files->append(row(i));
      ASSERT_FALSE(written);
      EXPECT_THAT(written.error().message, HasSubstr("metrics.jsonl"));
    }
    EXPECT_FALSE(files->add_evaluation(5, {.returns = {1}, .lengths = {1}}));
  }
  EXPECT_GT(files->counts().write_errors, 8u);
  EXPECT_EQ(files->counts().rows_lost, 0u);
  ASSERT_TRUE(files->flush());
  const PythonRun python = run_python(
      "import json, csv, numpy; d='" + directory.path().string() +
      "/'; s=[json.loads(l)['actor_steps'] for l in open(d+'metrics.jsonl')];"
      "assert s==list(range(1,10)), s;"
      "c=[int(r['actor_steps']) for r in csv.DictReader(open(d+'progress.csv'))]; assert c==s, c;"
      "assert numpy.load(d+'evaluations.npz')['timesteps'].tolist()==[5]");
  EXPECT_EQ(python.status, 0) << python.output;
}

TEST(RunFiles, EvaluationsOfClassifiersGrowByLinesAndAreCutByAResume) {
  const TemporaryFolder directory;
  const auto path = directory / "evaluations.jsonl";
  {
    auto files = RunFiles::open(directory.path(), 0);
    EXPECT_FALSE(std::filesystem::exists(path));
    for (const int updates : {10, 20, 20, 30})
      ASSERT_TRUE(files->add_report(updates, R"({"top1":0.5})"));
    const SmallDisk disk(8);
    EXPECT_FALSE(files->add_report(40, R"({"top1":0.6})"));
  }
  EXPECT_EQ(content_of(path),
            "{\"updates\":10,\"top1\":0.5}\n{\"updates\":20,\"top1\":0.5}\n"
            "{\"updates\":30,\"top1\":0.5}\n");
  auto files = RunFiles::open(directory.path(), 20);
  ASSERT_TRUE(files) << files.error().message;
  ASSERT_TRUE(files->add_report(25, R"({"top1":0.7})"));
  EXPECT_EQ(content_of(path),
            "{\"updates\":10,\"top1\":0.5}\n{\"updates\":20,\"top1\":0.5}\n"
            "{\"updates\":25,\"top1\":0.7}\n");
}

TEST(RunFiles, AResumeCutsAllThreeFilesAtTheRestoredStep) {
  const TemporaryFolder directory;
  {
    auto files = RunFiles::open(directory.path(), 0);
    for (const int steps : {10, 20, 30}) {
      ASSERT_TRUE(files->append(row(steps)));
      ASSERT_TRUE(files->add_evaluation(steps, {.returns = {1}, .lengths = {1}}));
    }
  }
  auto files = RunFiles::open(directory.path(), 20);
  ASSERT_TRUE(files) << files.error().message;
  EXPECT_EQ(files->evaluations().size(), 2u);
  EXPECT_THAT(content_of(directory / "metrics.jsonl"), ::testing::Not(HasSubstr(":30,")));
  EXPECT_THAT(content_of(directory / "progress.csv"), ::testing::Not(HasSubstr(",30,")));
  EXPECT_EQ(EvaluationLog::open(directory / "evaluations.npz", kKeepAll)->entries().size(), 2u);
}

TEST(RunFiles, AnUnusableDirectoryIsNamedAtTheStart) {
  const TemporaryFolder directory;
  const auto missing = RunFiles::open(directory / "missing", 0);
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().message, HasSubstr((directory / "missing").string()));
  std::filesystem::create_directory(directory / "progress.csv");
  const auto taken = RunFiles::open(directory.path(), 0);
  ASSERT_FALSE(taken);
  EXPECT_THAT(taken.error().message, HasSubstr("progress.csv"));
}

TEST(RunRecord, VersionsGrowOnlyWhenTheyChange) {
  const TemporaryFolder directory;
  ASSERT_TRUE(record_versions(directory.path(), {{"caf", "0.17.6"}}, 1760000000));
  ASSERT_TRUE(record_versions(directory.path(), {{"caf", "0.17.6"}}, 1760000001));
  const std::string once = content_of(directory / "versions.json");
  ASSERT_TRUE(record_versions(directory.path(), {{"caf", "0.18.0"}}, 1760000002));
  const std::string twice = content_of(directory / "versions.json");
  EXPECT_THAT(once, HasSubstr("2025-10-09T08:53:20Z"));
  EXPECT_THAT(twice, HasSubstr("0.17.6"));
  EXPECT_THAT(twice, HasSubstr("0.18.0"));
  EXPECT_EQ(once.find("versions"), once.rfind("versions"));
}

TEST(RunRecord, CommandsCanBePastedIntoAShell) {
  const TemporaryFolder directory;
  ASSERT_TRUE(
      record_command(directory.path(), {"./troupe", "run", "a b.yaml", "it's"}, 1760000000));
  ASSERT_TRUE(record_command(directory.path(), {"./troupe", "run", ""}, 1760000000));
  EXPECT_EQ(content_of(directory / "command.txt"),
            "# 2025-10-09T08:53:20Z\n./troupe run 'a b.yaml' 'it'\\''s'\n"
            "# 2025-10-09T08:53:20Z\n./troupe run ''\n");
}

TEST(RunRecord, TheNewestLiveRunIsFoundAndTheDeadAreNot) {
  const TemporaryFolder runs;
  for (const char* name : {"dead", "recycled", "alive", "broken", "empty"}) {
    std::filesystem::create_directory(runs / name);
  }
  const pid_t child = fork();
  if (child == 0) _exit(0);
  waitpid(child, nullptr, 0);
  Announcement dead = announcement_of_this_process("dead", "tcp://a:1", "tcp://a:2");
  dead.pid = child;
  ASSERT_TRUE(announce(runs / "dead", dead));
  Announcement recycled = announcement_of_this_process("recycled", "tcp://b:1", "tcp://b:2");
  recycled.process_start += 1;
  ASSERT_TRUE(announce(runs / "recycled", recycled));
  write_content(runs / "broken/telemetry.json", "{\"run\": 5");
  EXPECT_EQ(newest_live_run(runs.path()).error().code, ErrorCode::kNotFound);

  ASSERT_TRUE(
      announce(runs / "alive", announcement_of_this_process("alive", "tcp://c:1", "tcp://c:2")));
  const auto found = newest_live_run(runs.path());
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->run, "alive");
  EXPECT_EQ(found->snapshot_endpoint, "tcp://c:2");
  withdraw_announcement(runs / "alive");
  EXPECT_FALSE(newest_live_run(runs.path()));
  EXPECT_FALSE(newest_live_run(runs / "nowhere"));
}

}  // namespace
}  // namespace troupe::actors::telemetry
