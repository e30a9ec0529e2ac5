// What goes out to a file and comes back is the same items, and h5py agrees on what lies between.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "replay/checkpoint.hpp"
#include "tests/replay/offline/offline_support.hpp"

namespace troupe::replay {
namespace {

using namespace testing;
using ::testing::HasSubstr;

class RoundTrip : public ::testing::Test {
 protected:
  std::filesystem::path file() const { return folder_ / "episodes.hdf5"; }

  // Inserts an episode of `steps` in chunks of two; rewards differ at every step.
  void play(Table& table, std::uint64_t episode, std::uint32_t steps, EpisodeEnd end,
            std::uint32_t from = 0) {
    for (std::uint32_t first = from; first < steps; first += 2) {
      const std::uint32_t count = std::min(2U, steps - first);
      const ChunkHeader header{.worker = 3,
                               .incarnation = 2,
                               .sequence = sequence_++,
                               .environment = 1,
                               .episode = episode,
                               .first_step = first,
                               .steps = count,
                               .end = first + count == steps ? end : EpisodeEnd::kContinues,
                               .parameter_version = 10 * episode + first / 4};
      const auto outcome = table.try_insert(
          make_chunk(header, [&](std::uint32_t t) { return 0.1 * t + 1000.0 * episode; }));
      ASSERT_EQ(outcome.kind, InsertOutcome::Kind::kAccepted) << outcome.error.message;
    }
  }

  void expect_same_after(Table& table, const TableOptions& options) {
    export_table(table, file());
    auto back = make_table(options);
    import_table(*back, file());
    EXPECT_EQ(items_of(*back), items_of(table));
  }

  TemporaryFolder folder_;
  std::uint64_t sequence_ = 0;
};

TEST_F(RoundTrip, TerminatedAndTruncatedEpisodesGiveTheSameItems) {
  const TableOptions options = small_options(3, 0.9);
  auto table = make_table(options);
  play(*table, 0, 9, EpisodeEnd::kTerminated);
  play(*table, 1, 8, EpisodeEnd::kTruncated);
  play(*table, 2, 1, EpisodeEnd::kTerminated);
  expect_same_after(*table, options);
  EXPECT_EQ(table->statistics().held_items, 18U);
}

TEST_F(RoundTrip, AnOpenTailGivesTheSameItemsAndNoMore) {
  for (const std::int64_t n_step : {1, 3, 20}) {
    const TableOptions options = small_options(n_step, 0.9);
    auto table = make_table(options);
    play(*table, 0, 9, EpisodeEnd::kTerminated);
    play(*table, 1, 7, EpisodeEnd::kContinues);
    expect_same_after(*table, options);
  }
}

TEST_F(RoundTrip, AHeadThatTheTableLetGoOfStaysAway) {
  TableOptions options = small_options(3, 0.9);
  options.capacity = 8;
  auto table = make_table(options);
  play(*table, 0, 9, EpisodeEnd::kTruncated);
  play(*table, 1, 5, EpisodeEnd::kContinues);
  ASSERT_EQ(table->statistics().removed_items, 3U);
  options.capacity = 1000;
  expect_same_after(*table, options);
  EXPECT_EQ(open_episode_file(file(), small_signature()).value()->read(0)->steps.header.first_step,
            3U);
}

TEST_F(RoundTrip, NoItemSpansAHole) {
  const TableOptions options = small_options(3, 0.9);
  auto table = make_table(options);
  play(*table, 0, 6, EpisodeEnd::kContinues);
  play(*table, 0, 14, EpisodeEnd::kTerminated, 8);  // steps 6 and 7 never came
  expect_same_after(*table, options);
  const auto written = open_episode_file(file(), small_signature()).value();
  ASSERT_EQ(written->size(), 2U);
  EXPECT_FALSE(written->read(0)->complete());
  EXPECT_FALSE(written->read(1)->complete());
}

TEST_F(RoundTrip, AFileOfAFileIsTheSame) {
  const TableOptions options = small_options(2);
  auto table = make_table(options);
  play(*table, 0, 6, EpisodeEnd::kTruncated);
  play(*table, 1, 300, EpisodeEnd::kTerminated);
  StoredEpisodes stored(table->snapshot());
  export_table(*table, file());
  const auto written = open_episode_file(file(), small_signature()).value();
  ASSERT_EQ(written->size(), stored.size());
  for (std::size_t i = 0; i < stored.size(); ++i)
    EXPECT_EQ(written->read(i).value(), stored.read(i).value());
}

TEST_F(RoundTrip, ATableFromACheckpointFileIsExportedAlike) {
  const TableOptions options = small_options(3);
  auto table = make_table(options);
  play(*table, 0, 20, EpisodeEnd::kTruncated);
  const auto path = folder_ / "replay.table";
  ASSERT_TRUE(write_checkpoint(table->snapshot(), path));
  StoredEpisodes from_memory(table->snapshot()),
      from_file(*read_checkpoint(path, small_signature()));
  ASSERT_EQ(from_file.size(), 1U);
  EXPECT_EQ(from_file.read(0).value(), from_memory.read(0).value());
}

TEST_F(RoundTrip, PixelColumnsStayBytesAndExtrasKeepTheirTypes) {
  const Signature signature{
      .observation = {{"observation", DType::kF32, {2}}, {"camera", DType::kU8, {2, 2, 3}}},
      .step = {{"action", DType::kI32, {}}, {"log_p", DType::kF64, {}}},
      .spec_hash = 5};
  auto chunk = std::make_shared<Chunk>();
  chunk->header = {.steps = 2, .end = EpisodeEnd::kTerminated, .spec_hash = 5};
  chunk->observation = {bytes_of({1, 2, 3, 4, 5, 6}), std::vector<std::uint8_t>(36)};
  for (std::size_t i = 0; i < 36; ++i)
    chunk->observation[1][i] = static_cast<std::uint8_t>(200 + i);
  const std::array<std::int32_t, 2> actions{3, -1};
  const std::array<double, 2> log_p{0.1, 1e-300};
  chunk->step.resize(2);
  for (const auto& [column, data, size] :
       {std::tuple(0, static_cast<const void*>(actions.data()), sizeof actions),
        std::tuple(1, static_cast<const void*>(log_p.data()), sizeof log_p)}) {
    chunk->step[static_cast<std::size_t>(column)].resize(size);
    std::memcpy(chunk->step[static_cast<std::size_t>(column)].data(), data, size);
  }
  chunk->reward = {0.5F, 0.25F};
  auto table = Table::create(small_options(), signature).value();
  ASSERT_EQ(table->try_insert(chunk).kind, InsertOutcome::Kind::kAccepted);
  export_table(*table, file(), 0);
  const Episode back = open_episode_file(file(), signature).value()->read(0).value();
  EXPECT_EQ(back.steps.observation, chunk->observation);
  EXPECT_EQ(back.steps.step, chunk->step);
  const PythonRun python = run_python(
      "import h5py; e = h5py.File('" + file().string() +
      "')['episode_0']; o = e['observations']; "
      "print(o['camera'].dtype, o['camera'].shape, o['camera'][2, 1, 1, 2], e['actions'].dtype, "
      "e['actions'][:], e['extras/log_p'].dtype, e['extras/log_p'][1])");
  EXPECT_EQ(python.output, "uint8 (3, 2, 2, 3) 235 int32 [ 3 -1] float64 1e-300\n");
}

TEST_F(RoundTrip, PlainH5pyReadsWhatMinariReaders) {
  auto table = make_table(small_options(3, 0.9));
  play(*table, 0, 9, EpisodeEnd::kTerminated);
  play(*table, 1, 5, EpisodeEnd::kContinues);
  export_table(*table, file());
  const PythonRun python = run_python(R"(
import h5py, numpy
f = h5py.File(')" + file().string() +
                                      R"(')
assert f.attrs['format'] == 'troupe-episodes' and f.attrs['environment'] == 'made_up'
assert f.attrs['total_episodes'] == 2 and f.attrs['total_steps'] == 13
assert f.attrs['complete_episodes'] == 1 and f.attrs['discount'] == 0.9 and f.attrs['n_step'] == 3
e = f['episode_0']
assert e.attrs['id'] == 0 and e.attrs['total_steps'] == 9 and e.attrs['worker'] == 3
assert e.attrs['end'] == 'terminated' and e.attrs['complete'] == 1 and e.attrs['first_step'] == 0
assert e['observations'].shape == (10, 2) and e['observations'].dtype == numpy.float32
assert (e['observations'][:, 1] == numpy.arange(10)).all()
assert e['actions'].shape == (9, 1) and e['rewards'].dtype == numpy.float32
assert numpy.array_equal(e['rewards'][:], (0.1 * numpy.arange(9)).astype(numpy.float32))
assert e['terminations'].dtype == bool and e['terminations'][:].tolist() == [False] * 8 + [True]
assert not e['truncations'][:].any()
assert e['policies'][:].tolist() == [[0, 0, 0], [4, 1, 0], [8, 2, 0]]
assert e['observations'].chunks and e['observations'].compression == 'gzip'
o = f['episode_1']
assert o.attrs['end'] == 'open' and o.attrs['total_steps'] == 4 and o.attrs['complete'] == 0
assert o['observations'].shape == (5, 2) and o['actions'].shape == (4, 1)
assert o['truncations'][:].tolist() == [False] * 3 + [True] and not o['terminations'][:].any()
assert o['open_step/actions'].shape == (1, 1) and o['open_step/actions'][0, 0] == 104
print('read')
)");
  EXPECT_EQ(python.output, "read\n");
}

TEST_F(RoundTrip, AnUnwritableFolderIsNamedAndNothingIsLeft) {
  const auto writer =
      EpisodeWriter::create("/nowhere/episodes.hdf5", {.signature = small_signature()});
  ASSERT_FALSE(writer);
  EXPECT_EQ(writer.error().code, ErrorCode::kIo);
  EXPECT_THAT(writer.error().message, HasSubstr("/nowhere/episodes.hdf5"));
}

TEST_F(RoundTrip, AnUnfinishedFileNeverAppears) {
  EpisodeWriter::create(file(), {.signature = small_signature()}).value();
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
}

}  // namespace
}  // namespace troupe::replay
