// What a good configuration reads as: types, layers of files and overrides, and where each value is
// from.
#include "actors/config/reader.hpp"

#include <gmock/gmock.h>

#include "tests/actors/config/config_files.hpp"

namespace troupe::actors {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class ReaderTest : public ConfigFiles {
 protected:
  // Options from `text`, with a task set on the command line where the text has none.
  LoadedConfig load(const std::string& text, std::vector<std::string> overrides = {}) {
    overrides.insert(overrides.begin(), "environment.name=pendulum");
    auto config = load_config(write("config.yaml", text), overrides);
    EXPECT_TRUE(config) << config.error().message;
    return config.value_or(LoadedConfig{});
  }
};

TEST_F(ReaderTest, AnEmptyFileGivesTheDefaults) {
  const LoadedConfig config = load("# nothing\n");
  EXPECT_EQ(config.options.seed, 1);
  EXPECT_EQ(config.options.learners.learner.d4pg.batch, 256);
  EXPECT_EQ(config.origin("d4pg.batch").text(), "default");
}

TEST_F(ReaderTest, ReadsEveryType) {
  const LoadedConfig config = load(
      "job: null\n"
      "seed: 0\n"
      "processes: 0\n"
      "deterministic: true\n"
      "d4pg: {learning_rate: 1e-4, policy: [64, 0x40], v_min: -1e2, v_max: .5}\n"
      "replay: {capacity: 1e6, error_buffer: 1e4}\n"
      "learners: {devices: [cpu, 'cpu']}\n"
      "checkpoint: {every: 1.5m}\n"
      "stop: {return: ~, wall_time: \"20m\"}\n"
      "supervision:\n");
  EXPECT_EQ(config.options.job, "null");
  EXPECT_EQ(config.options.seed, 0);
  EXPECT_EQ(config.options.processes, "0");
  EXPECT_TRUE(config.options.deterministic);
  EXPECT_EQ(config.options.learners.learner.d4pg.learning_rate, 1e-4);
  EXPECT_THAT(config.options.learners.learner.d4pg.policy, ElementsAre(64, 64));
  EXPECT_EQ(config.options.learners.learner.d4pg.v_min, -100);
  EXPECT_EQ(config.options.learners.learner.d4pg.v_max, 0.5);
  EXPECT_EQ(config.options.replay.capacity, 1000000);
  EXPECT_EQ(config.options.replay.error_buffer, 1e4);
  EXPECT_THAT(config.options.learners.learner.devices, ElementsAre("cpu", "cpu"));
  EXPECT_EQ(config.options.checkpoint.every, Duration(90000));
  EXPECT_EQ(config.options.stop.mean_return, std::nullopt);
  EXPECT_EQ(config.options.stop.wall_time, Duration(1200000));
}

TEST_F(ReaderTest, SeedZeroIsKept) {
  EXPECT_EQ(load("seed: 0\n").options.seed, 0);
  EXPECT_EQ(load("seed: 7\n", {"seed=0"}).options.seed, 0);
  EXPECT_EQ(load("seed: 0\n").origin("seed").kind, Origin::Kind::kFile);
}

TEST_F(ReaderTest, OverridesWinAndTheLastOfTwoCounts) {
  const LoadedConfig config = load("seed: 3\nd4pg: {policy: [8]}\n",
                                   {"seed=4", "seed=5", "d4pg.policy=[16, 32]", "actors={count: 3}",
                                    "stop.return=-2e2", "telemetry.endpoint=tcp://127.0.0.1:*"});
  EXPECT_EQ(config.options.seed, 5);
  EXPECT_THAT(config.options.learners.learner.d4pg.policy, ElementsAre(16, 32));
  EXPECT_EQ(config.options.actors.count, 3);
  EXPECT_EQ(config.options.stop.mean_return, -200);
  EXPECT_EQ(config.options.telemetry.endpoint, "tcp://127.0.0.1:*");
  EXPECT_EQ(config.origin("actors.count").text(), "command line");
}

TEST_F(ReaderTest, LaterFilesOverrideWhatTheyExtend) {
  write("shared/base.yaml", "seed: 3\nd4pg: {batch: 64, atoms: 21}\n");
  write("middle.yaml", "extends: shared/base.yaml\nd4pg: {batch: 128}\n");
  const LoadedConfig config = load("d4pg: {sigma: .2}\nextends: middle.yaml\n");
  EXPECT_EQ(config.options.seed, 3);
  EXPECT_EQ(config.options.learners.learner.d4pg.batch, 128);
  EXPECT_EQ(config.options.learners.learner.d4pg.atoms, 21);
  EXPECT_EQ(config.options.learners.learner.d4pg.sigma, 0.2);
  EXPECT_EQ(config.origin("seed").text(), path("shared/base.yaml").string() + ":1");
  EXPECT_EQ(config.origin("d4pg.batch").text(), path("middle.yaml").string() + ":2");
}

TEST_F(ReaderTest, ATextIsReadLikeAFileThatExtendsNothing) {
  const auto config = parse_config("environment: {name: pendulum}\nseed: 3\n", "the text");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->options.seed, 3);
  const auto wrong = parse_config("seed: x\nextends: a.yaml\n", "the text");
  ASSERT_FALSE(wrong);
  EXPECT_THAT(wrong.error().message, testing::HasSubstr("the text:1: seed"));
  EXPECT_THAT(wrong.error().message, testing::HasSubstr("the text:2: extends belongs into a file"));
}

TEST_F(ReaderTest, AByteOrderMarkAndWindowsLineEndsAreNoMatter) {
  EXPECT_EQ(load("\xEF\xBB\xBFseed: 9\r\njob: null\r\n").options.job, "null");
}

TEST_F(ReaderTest, EqualOptionsHaveEqualHashesWhereverTheyComeFrom) {
  const LoadedConfig from_file = load("seed: 3\n");
  EXPECT_EQ(from_file.hash, load("", {"seed=3"}).hash);
  EXPECT_NE(from_file.hash, load("seed: 4\n").hash);
  EXPECT_EQ(from_file.hash.size(), 16u);
}

// Former names, with a table of the test's own.
class RenamedTest : public ConfigFiles {
 protected:
  static constexpr RenamedKey kTable[] = {
      {"d4pg.seq_len", "d4pg.n_step", true, "it never was a length"},
      {"d4pg.magic", "", false, ""},
      {"d4pg.lr", "d4pg.learning_rate", false, ""},
  };

  Reading read(const std::string& text) {
    options_ = RunOptions{};
    const Description description = description_of(options_);
    return read_config(description, write("config.yaml", text), {}, kTable);
  }
  RunOptions options_;
};

TEST_F(RenamedTest, AnHonouredKeyKeepsItsValueAndSaysSo) {
  const Reading reading = read("d4pg: {seq_len: 7}\n");
  EXPECT_EQ(options_.learners.learner.d4pg.n_step, 7);
  EXPECT_TRUE(reading.mistakes.empty());
  EXPECT_THAT(reading.notes, ElementsAre(HasSubstr("d4pg.seq_len is now called d4pg.n_step")));
}

TEST_F(RenamedTest, AnHonouredKeyIsTypedLikeItsSuccessor) {
  EXPECT_THAT(read("d4pg: {seq_len: long}\n").mistakes,
              ElementsAre(HasSubstr("d4pg.n_step expects an integer")));
}

TEST_F(RenamedTest, BothNamesAtOnceAreRefusedInEitherOrder) {
  EXPECT_THAT(read("d4pg: {n_step: 3, seq_len: 7}\n").mistakes,
              ElementsAre(HasSubstr("d4pg.seq_len is the former name of d4pg.n_step")));
  EXPECT_THAT(read("d4pg: {seq_len: 7, n_step: 3}\n").mistakes,
              ElementsAre(HasSubstr("d4pg.seq_len is the former name of d4pg.n_step")));
}

TEST_F(RenamedTest, AKeyThatIsGoneIsRefusedByName) {
  EXPECT_THAT(read("d4pg: {magic: 1}\n").mistakes,
              ElementsAre(HasSubstr("unknown key d4pg.magic; it has no successor")));
  EXPECT_THAT(read("d4pg: {lr: 1}\n").mistakes,
              ElementsAre(HasSubstr("unknown key d4pg.lr; use d4pg.learning_rate")));
}

TEST_F(RenamedTest, EveryRefusedNamePointsToAKeyThatExists) {
  const Description description = description_of(options_);
  for (const RenamedKey& renamed : kRenamedKeys) {
    EXPECT_TRUE(renamed.present.empty() || description.find_field(renamed.present))
        << renamed.present;
    EXPECT_FALSE(description.find_field(renamed.key) || description.find_group(renamed.key))
        << renamed.key;
  }
}

}  // namespace
}  // namespace troupe::actors
