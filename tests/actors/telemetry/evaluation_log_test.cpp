// evaluations.npz in stable-baselines3's layout, over resumes and failures.
#include "actors/telemetry/evaluation_log.hpp"

#include <gmock/gmock.h>

#include <cmath>

#include "tests/actors/telemetry/small_disk.hpp"
#include "tests/support/python.hpp"
#include "tests/support/temporary_folder.hpp"

namespace troupe::actors::telemetry {
namespace {

using ::testing::HasSubstr;

std::vector<std::int64_t> steps_of(const EvaluationLog& log) {
  std::vector<std::int64_t> steps;
  for (const auto& entry : log.entries()) steps.push_back(entry.actor_steps);
  return steps;
}

TEST(EvaluationLog, NumpyFindsStableBaselinesLayout) {
  const TemporaryFolder directory;
  auto log = EvaluationLog::open(directory / "evaluations.npz", 0);
  ASSERT_TRUE(log) << log.error().message;
  log->add(1000, {.returns = {1.5, 2.5, 3.5}, .lengths = {10, 20, 30}});
  log->add(2000, {.returns = {4.5, 5.5, 6.5}, .lengths = {40, 50, 60}});
  ASSERT_TRUE(log->save());
  const PythonRun python =
      run_python("import numpy as np; a=np.load('" + (directory / "evaluations.npz").string() +
                 "'); assert a['timesteps'].tolist()==[1000,2000];"
                 "assert a['results'].shape==(2,3) and a['results'].dtype==np.float64;"
                 "assert a['results'].mean(axis=1).tolist()==[2.5,5.5];"
                 "assert a['ep_lengths'].tolist()==[[10,20,30],[40,50,60]]");
  EXPECT_EQ(python.status, 0) << python.output;
}

TEST(EvaluationLog, AResumeKeepsWhatLiesBeforeTheRestoredStep) {
  const TemporaryFolder directory;
  {
    auto log = EvaluationLog::open(directory / "e.npz", 0);
    for (const int steps : {1000, 2000, 3000}) {
      log->add(steps, {.returns = {1.0 * steps}, .lengths = {5}});
    }
    ASSERT_TRUE(log->save());
  }
  auto log = EvaluationLog::open(directory / "e.npz", 2500);
  ASSERT_TRUE(log) << log.error().message;
  EXPECT_EQ(steps_of(*log), (std::vector<std::int64_t>{1000, 2000}));
  EXPECT_TRUE(log->needs_save());
  log->add(2000, {.returns = {7}, .lengths = {5}});  // evaluated again: replaces
  log->add(2800, {.returns = {8}, .lengths = {5}});
  ASSERT_TRUE(log->save());
  auto again = EvaluationLog::open(directory / "e.npz", 9999);
  EXPECT_EQ(steps_of(*again), (std::vector<std::int64_t>{1000, 2000, 2800}));
  EXPECT_EQ(again->entries()[1].evaluation.returns, std::vector<double>{7});
  EXPECT_FALSE(again->needs_save());
}

TEST(EvaluationLog, UnequalNumbersOfEpisodesAreFilledUpAndComeBackUnequal) {
  const TemporaryFolder directory;
  auto log = EvaluationLog::open(directory / "e.npz", 0);
  log->add(1, {.returns = {1}, .lengths = {5}});
  log->add(2, {.returns = {2, std::nan("")}, .lengths = {6, 7}});
  ASSERT_TRUE(log->save());
  auto again = EvaluationLog::open(directory / "e.npz", 9);
  EXPECT_EQ(again->entries()[0].evaluation.returns, std::vector<double>{1});
  EXPECT_EQ(again->entries()[1].evaluation.lengths, (std::vector<std::int64_t>{6, 7}));
}

TEST(EvaluationLog, AFullDiskLosesNothing) {
  const TemporaryFolder directory;
  auto log = EvaluationLog::open(directory / "e.npz", 0);
  {
    const SmallDisk disk(16);
    log->add(1, {.returns = {1}, .lengths = {5}});
    const auto saved = log->save();
    ASSERT_FALSE(saved);
    EXPECT_THAT(saved.error().message, HasSubstr("e.npz"));
    EXPECT_TRUE(log->needs_save());
  }
  ASSERT_TRUE(log->save());
  EXPECT_EQ(EvaluationLog::open(directory / "e.npz", 9)->entries().size(), 1u);
}

TEST(EvaluationLog, ADamagedFileIsNamedAndLeftAlone) {
  const TemporaryFolder directory;
  write_content(directory / "e.npz", "PK not really");
  const auto log = EvaluationLog::open(directory / "e.npz", 0);
  ASSERT_FALSE(log);
  EXPECT_EQ(log.error().code, ErrorCode::kCorrupt);
  EXPECT_THAT(log.error().message, HasSubstr("e.npz"));
  EXPECT_EQ(content_of(directory / "e.npz"), "PK not really");
}

}  // namespace
}  // namespace troupe::actors::telemetry
