// Files that others wrote, with h5py: Minari's and D4RL's layouts are read, damaged and hostile
// ones are refused with file and dataset named, bad episodes are passed over and counted.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/replay/offline/offline_support.hpp"

namespace troupe::replay {
namespace {

using namespace testing;
using ::testing::AllOf;
using ::testing::HasSubstr;

// What small_signature wants: two episodes of 3 and 2 steps, the second truncated.
constexpr const char* kGood = R"(
def episode(f, i, steps, ends, **other):
    e = f.create_group('episode_%d' % i)
    e.attrs['id'] = i
    e.attrs['total_steps'] = steps
    data = {'observations': numpy.full((steps + 1, 2), i, 'f8'), 'actions': numpy.zeros((steps, 1), 'f4'),
            'rewards': numpy.ones(steps, 'f8'), 'terminations': numpy.zeros(steps, bool),
            'truncations': numpy.zeros(steps, bool)}
    data['observations'][:, 1] = numpy.arange(steps + 1)
    if ends: data[ends][-1] = True
    data.update(other)
    for name, value in data.items():
        if value is not None: e.create_dataset(name, data=value)
    return e
)";

class ForeignFiles : public ::testing::Test {
 protected:
  std::filesystem::path file() const { return folder_ / "foreign.hdf5"; }

  // Runs `code`, which writes into f.
  void write(const std::string& code) {
    const PythonRun python = run_python("import h5py, numpy\nf = h5py.File('" + file().string() +
                                        "', 'w')" + kGood + code + "\nf.close()\n");
    ASSERT_EQ(python.status, 0) << python.output;
  }

  // Why the file is refused, by opening or by reading all of it.
  std::string refusal() const {
    auto opened = open_episode_file(file(), small_signature());
    if (!opened) return opened.error().message;
    auto table = make_table(small_options());
    const auto filled = fill(*table, **opened);
    return filled ? "accepted" : filled.error().message;
  }

  void expect_refused(const std::string& dataset, const std::string& why) {
    EXPECT_THAT(refusal(), AllOf(HasSubstr(file().string()), HasSubstr(dataset), HasSubstr(why)));
  }

  TemporaryFolder folder_;
};

TEST_F(ForeignFiles, MinariEpisodesAreReadWithTheirLastObservations) {
  write(
      "episode(f, 0, 3, 'terminations'); episode(f, 1, 2, 'truncations'); episode(f, 2, 2, None)");
  const auto opened = open_episode_file(file(), small_signature()).value();
  EXPECT_EQ(opened->info().layout, "minari");
  EXPECT_FALSE(opened->actions_in_policy_units());
  ASSERT_EQ(opened->size(), 3U);
  const Episode first = opened->read(0).value();
  EXPECT_EQ(first.steps.header.end, EpisodeEnd::kTerminated);
  EXPECT_EQ(first.steps.observation[0], bytes_of({0, 0, 0, 1, 0, 2, 0, 3}));
  EXPECT_EQ(opened->read(1)->steps.header.end, EpisodeEnd::kTruncated);
  // Without a mark the collection broke off; the last observation is there to bootstrap from.
  EXPECT_EQ(opened->read(2)->steps.header.end, EpisodeEnd::kTruncated);
}

TEST_F(ForeignFiles, ActionsInTheEnvironmentsBoundsAreHandedToTheConverter) {
  write("episode(f, 0, 3, 'terminations')");
  const auto opened = open_episode_file(file(), small_signature()).value();
  auto table = make_table(small_options());
  int converted = 0;
  ASSERT_TRUE(fill(*table, *opened, {.convert_actions = [&](Chunk&) -> Result<void> {
    ++converted;
    return {};
  }}));
  EXPECT_EQ(converted, 1);
}

constexpr const char* kFlat = R"(
n = 8
f['observations'] = numpy.stack([numpy.zeros(n), numpy.arange(n)], 1).astype('f4')
f['actions'] = numpy.arange(n, dtype='f4').reshape(n, 1)
f['rewards'] = numpy.arange(n, dtype='f4')
f['terminals'] = numpy.array([0, 0, 1, 0, 0, 0, 0, 0], bool)
f['timeouts'] = numpy.array([0, 0, 0, 0, 0, 1, 0, 0], bool)
)";

TEST_F(ForeignFiles, FlatColumnsAreCutAtTerminalsAndTimeouts) {
  write(kFlat);
  const auto opened = open_episode_file(file(), small_signature()).value();
  EXPECT_EQ(opened->info().layout, "d4rl");
  ASSERT_EQ(opened->size(), 3U);
  EXPECT_EQ(opened->read(0)->steps.header.end, EpisodeEnd::kTerminated);
  // Nobody knows what was seen after the timeout: nothing may bootstrap from it.
  EXPECT_EQ(opened->read(1)->steps.header.end, EpisodeEnd::kContinues);
  EXPECT_EQ(opened->read(2)->steps.header.end, EpisodeEnd::kContinues);
  auto table = make_table(small_options(2, 0.5));
  EXPECT_EQ(import_table(*table, file()).steps, 8U);
  // By hand: two-step items of rows 0-2 (terminal), row 3 (+4, from row 5's observation).
  const auto items = items_of(*table);
  ASSERT_EQ(items.size(), 4U);
  EXPECT_EQ(items.count({{0, 0}, {0}, 0 + 0.5F * 1, 0.25F, {0, 2}, 0}), 1U);
  EXPECT_EQ(items.count({{0, 1}, {1}, 1 + 0.5F * 2, 0.0F, {0, 2}, 0}), 1U);
  EXPECT_EQ(items.count({{0, 2}, {2}, 2.0F, 0.0F, {0, 2}, 0}), 1U);
  EXPECT_EQ(items.count({{0, 3}, {3}, 3 + 0.5F * 4, 0.25F, {0, 5}, 0}), 1U);
}

TEST_F(ForeignFiles, NextObservationsLetATimeoutBootstrap) {
  write(std::string(kFlat) + "f['next_observations'] = f['observations'][:] + [0, 1]");
  const auto opened = open_episode_file(file(), small_signature()).value();
  const Episode second = opened->read(1).value();
  EXPECT_EQ(second.steps.header.end, EpisodeEnd::kTruncated);
  EXPECT_EQ(second.steps.observation[0], bytes_of({0, 3, 0, 4, 0, 5, 0, 6}));
}

TEST_F(ForeignFiles, EpisodesThatAreNotFiniteAreCountedAndTheOthersStay) {
  write(
      "episode(f, 0, 3, 'terminations')\n"
      "episode(f, 1, 2, 'truncations', rewards=numpy.array([1, numpy.nan]))\n"
      "episode(f, 2, 2, None, observations=numpy.full((3, 2), numpy.inf))\n"
      "episode(f, 3, 2, None, terminations=numpy.array([True, False]))\n"
      "episode(f, 4, 2, 'truncations')");
  auto table = make_table(small_options());
  const FillReport report = import_table(*table, file());
  EXPECT_EQ(report.episodes, 2U);
  EXPECT_EQ(report.skipped_episodes, 3U);
  EXPECT_THAT(report.first_skipped, AllOf(HasSubstr("episode_1"), HasSubstr("'reward' at step 1")));
  EXPECT_EQ(table->statistics().held_items, 5U);
}

TEST_F(ForeignFiles, LengthsThatDisagreeAreRefused) {
  write("episode(f, 0, 3, None, observations=numpy.zeros((3, 2)))");
  expect_refused("episode_0/observations", "has 3 rows; its episode needs 4");
  write("episode(f, 0, 3, None, actions=numpy.zeros((5, 1)))");
  expect_refused("episode_0/actions", "has 5 rows; its episode needs 3");
  write("episode(f, 0, 3, None, terminations=numpy.zeros(2, bool))");
  expect_refused("episode_0/terminations", "has 2 rows");
  write("episode(f, 0, 3, None, observations=numpy.zeros((4, 7)))");
  expect_refused("episode_0/observations", "has 7 numbers a row; column 'observation'");
  write(std::string(kFlat) + "del f['actions']; f['actions'] = numpy.zeros((7, 1))");
  expect_refused("dataset 'actions'", "has 7 rows");
}

TEST_F(ForeignFiles, WrongTypesAndMissingDatasetsAreRefused) {
  write("episode(f, 0, 3, None, rewards=numpy.array([b'a', b'b', b'c']))");
  expect_refused("episode_0/rewards", "holds no numbers");
  write("episode(f, 0, 3, None, actions=None)");
  expect_refused("episode_0/actions", "is missing");
  write("episode(f, 0, 3, None, observations=None).create_group('observations')");
  expect_refused("episode_0/observations/observation", "is missing");
  write("f['something'] = 1");
  EXPECT_THAT(refusal(), HasSubstr("neither a group 'episode_0'"));
  write("episode(f, 0, 3, None); f.attrs['format'] = 'other'");
  EXPECT_THAT(refusal(), HasSubstr("is of the format 'other'"));
  write("episode(f, 0, 3, None); f.attrs['total_episodes'] = 9");
  EXPECT_THAT(refusal(), HasSubstr("says 9 episodes, but holds 1"));
  write("episode(f, 0, 3, None); f.attrs['spec_hash'] = 78");
  EXPECT_THAT(refusal(), HasSubstr("spec hash 78, not 77"));
}

TEST_F(ForeignFiles, FloatsAndLargeIntegersDoNotBecomeFrames) {
  const Signature pixels{.observation = {{"camera", DType::kU8, {2}}},
                         .step = {{"action", DType::kI32, {}}},
                         .spec_hash = 77};
  const auto why = [&] {
    const auto read = open_episode_file(file(), pixels).value()->read(0);
    return read ? "accepted" : read.error().message;
  };
  write("episode(f, 0, 1, None, actions=numpy.array([3]))");
  EXPECT_THAT(why(), HasSubstr("episode_0/observations' holds floats; its column is u8"));
  write("episode(f, 0, 1, None, observations=numpy.array([[1, 2], [3, 256]]), actions=[3])");
  EXPECT_THAT(why(), HasSubstr("episode_0/observations' holds 256, which its column cannot"));
  write("episode(f, 0, 1, None, observations=numpy.array([[1, 2], [3, 255]]), actions=[2**40])");
  EXPECT_THAT(why(), HasSubstr("episode_0/actions' holds 1099511627776"));
}

TEST_F(ForeignFiles, SizesThatTheFileCannotHoldAreRefusedBeforeTheyAreAllocated) {
  write(
      "e = episode(f, 0, 3, None, rewards=None)\n"
      "e.create_dataset('rewards', shape=(10**12,), dtype='f4', chunks=(1024,), compression=4)");
  expect_refused("episode_0/rewards", "4000000000000 bytes of data");
  write(
      "e = episode(f, 0, 3, None, observations=None)\n"
      "e.create_dataset('observations', shape=(4, 2), dtype='f4', external=[('/etc/passwd', 0, "
      "32)])");
  expect_refused("episode_0/observations", "other files");
  write(
      "e = episode(f, 0, 3, None, actions=None)\n"
      "e['actions'] = h5py.ExternalLink('elsewhere.hdf5', '/actions')");
  expect_refused("episode_0/actions", "is missing");
}

TEST_F(ForeignFiles, EveryTruncationIsRefusedOrReadsTheSame) {
  write("episode(f, 0, 3, 'terminations')");
  const std::string whole = content_of(file());
  for (std::size_t size = 0; size < whole.size(); size += 97) {
    write_content(file(), whole.substr(0, size));
    EXPECT_THAT(refusal(), HasSubstr(file().string())) << size;
  }
}

TEST_F(ForeignFiles, OtherFilesAreNamed) {
  write_content(file(), "no HDF5");
  EXPECT_EQ(refusal(), file().string() + " is no HDF5 file");
  const auto missing = open_episode_file(folder_ / "nothing.hdf5", small_signature());
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace troupe::replay
