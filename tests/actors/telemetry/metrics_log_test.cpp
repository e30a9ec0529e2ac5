// metrics.jsonl and progress.csv: shape, growth of the header, and resumes.
#include "actors/telemetry/metrics_log.hpp"

#include <gmock/gmock.h>

#include <cmath>

#include "tests/actors/telemetry/small_disk.hpp"
#include "tests/support/temporary_folder.hpp"

namespace troupe::actors::telemetry {
namespace {

using ::testing::HasSubstr;

MetricsRow row(std::int64_t steps, Metrics values = {}) {
  return {.time = 1760000000.5,
          .elapsed = 2,
          .actor_steps = steps,
          .learner_updates = steps / 10,
          .values = std::move(values)};
}

TEST(CsvTable, ColumnsStayAndANewNameRewritesTheHeader) {
  const TemporaryFolder directory;
  auto table = CsvTable::open(directory / "p.csv", 0);
  ASSERT_TRUE(table) << table.error().message;
  ASSERT_TRUE(table->append(row(100, {{"b", 1}, {"c", 2.5}})));
  ASSERT_TRUE(table->append(row(200, {{"c", 3}})));
  ASSERT_TRUE(table->append(row(300, {{"a", 7}, {"b", 4}})));
  EXPECT_EQ(content_of(directory / "p.csv"),
            "time,elapsed,actor_steps,learner_updates,b,c,a\n"
            "1760000000.5,2,100,10,1,2.5,\n"
            "1760000000.5,2,200,20,,3,\n"
            "1760000000.5,2,300,30,4,,7\n");
}

TEST(CsvTable, WritesNanAndQuotesNames) {
  const TemporaryFolder directory;
  auto table = CsvTable::open(directory / "p.csv", 0);
  ASSERT_TRUE(table->append(row(1, {{"a,\"b\"", std::nan("")}, {"c", -INFINITY}, {"x\ny", 1}})));
  EXPECT_EQ(content_of(directory / "p.csv"),
            "time,elapsed,actor_steps,learner_updates,\"a,\"\"b\"\"\",c\n"
            "1760000000.5,2,1,0,nan,-inf\n");
  auto again = CsvTable::open(directory / "p.csv", kKeepAll);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->columns()[4], "a,\"b\"");
}

TEST(CsvTable, AResumeCutsRowsBeyondTheRestoredStepAndHalfARow) {
  const TemporaryFolder directory;
  {
    auto table = CsvTable::open(directory / "p.csv", 0);
    for (const int steps : {100, 200, 300}) ASSERT_TRUE(table->append(row(steps, {{"a", steps}})));
  }
  write_content(directory / "p.csv", content_of(directory / "p.csv") + "1760000000.5,2,2");
  auto table = CsvTable::open(directory / "p.csv", 250);
  ASSERT_TRUE(table);
  ASSERT_TRUE(table->append(row(200, {{"a", -1}})));  // the restored step again: not a second row
  ASSERT_TRUE(table->append(row(260, {{"a", 1}, {"z", 2}})));
  EXPECT_EQ(content_of(directory / "p.csv"),
            "time,elapsed,actor_steps,learner_updates,a,z\n"
            "1760000000.5,2,100,10,100,\n"
            "1760000000.5,2,200,20,200,\n"
            "1760000000.5,2,260,26,1,2\n");
}

TEST(CsvTable, AForeignFileIsRefusedAndLeftAlone) {
  const TemporaryFolder directory;
  write_content(directory / "p.csv", "a,b\n1,2\n");
  const auto table = CsvTable::open(directory / "p.csv", 0);
  ASSERT_FALSE(table);
  EXPECT_THAT(table.error().message, HasSubstr("p.csv"));
  EXPECT_EQ(content_of(directory / "p.csv"), "a,b\n1,2\n");
}

TEST(CsvTable, ADeletedFileGetsItsHeaderAgain) {
  const TemporaryFolder directory;
  auto table = CsvTable::open(directory / "p.csv", 0);
  ASSERT_TRUE(table->append(row(1, {{"a", 1}})));
  std::filesystem::remove(directory / "p.csv");
  ASSERT_TRUE(table->append(row(2, {{"a", 2}})));
  EXPECT_EQ(content_of(directory / "p.csv"),
            "time,elapsed,actor_steps,learner_updates,a\n1760000000.5,2,2,0,2\n");
}

TEST(CsvTable, AFullDiskWhileTheHeaderGrowsLosesNoRow) {
  const TemporaryFolder directory;
  auto table = CsvTable::open(directory / "p.csv", 0);
  ASSERT_TRUE(table->append(row(1, {{"a", 1}})));
  const std::string before = content_of(directory / "p.csv");
  {
    const SmallDisk disk(before.size());
    EXPECT_FALSE(table->append(row(2, {{"b", 2}})));
    EXPECT_EQ(content_of(directory / "p.csv"), before);
  }
  ASSERT_TRUE(table->append(row(2, {{"b", 2}})));
  EXPECT_EQ(content_of(directory / "p.csv"),
            "time,elapsed,actor_steps,learner_updates,a,b\n"
            "1760000000.5,2,1,0,1,\n1760000000.5,2,2,0,,2\n");
}

TEST(JsonLines, HoldsOneObjectPerLineWithNanAsText) {
  const TemporaryFolder directory;
  auto log = JsonLines::open(directory / "m.jsonl", 0);
  ASSERT_TRUE(log) << log.error().message;
  ASSERT_TRUE(log->append(row(10, {{"a", 1.5}, {"b", std::nan("")}, {"c", INFINITY}})));
  EXPECT_EQ(content_of(directory / "m.jsonl"),
            R"({"time":1760000000.5,"elapsed":2.0,"actor_steps":10,"learner_updates":1,)"
            R"("a":1.5,"b":"nan","c":"inf"})"
            "\n");
}

TEST(JsonLines, TwoResumesLeaveOneMonotonicCurve) {
  const TemporaryFolder directory;
  const auto session = [&](std::int64_t restored, std::initializer_list<int> steps) {
    auto log = JsonLines::open(directory / "m.jsonl", restored);
    for (const int step : steps) ASSERT_TRUE(log->append(row(step)));
  };
  session(0, {10, 20, 30});
  session(20, {20, 25, 40});
  write_content(directory / "m.jsonl", content_of(directory / "m.jsonl") + "{\"actor_st");
  session(25, {26, 50});
  std::vector<std::string> steps;
  std::istringstream lines(content_of(directory / "m.jsonl"));
  for (std::string line; std::getline(lines, line);) {
    const std::size_t at = line.find("actor_steps\":") + 13;
    steps.push_back(line.substr(at, line.find(',', at) - at));
  }
  EXPECT_THAT(steps, ::testing::ElementsAre("10", "20", "25", "26", "50"));
}

}  // namespace
}  // namespace troupe::actors::telemetry
