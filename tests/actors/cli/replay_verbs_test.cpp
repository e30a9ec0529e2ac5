// `troupe replay` on a table of made-up pendulum episodes: out, looked at, and in again.
#include <nlohmann/json.hpp>

#include "envs/registry.hpp"
#include "replay/checkpoint.hpp"
#include "replay/offline/episode_reader.hpp"
#include "tests/actors/cli/cli_fixture.hpp"

namespace troupe::actors {
namespace {

using Json = nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

replay::Signature pendulum() {
  return replay::signature_of(envs::make_env("pendulum", {}).value()->spec());
}

// One whole episode of 5 steps with rewards 0, 1, 2, ..., then the first 4 of the next.
replay::ChunkPtr chunk(std::uint64_t episode, std::uint32_t steps, replay::EpisodeEnd end) {
  auto made = std::make_shared<replay::Chunk>();
  made->header = {.sequence = episode,
                  .episode = episode,
                  .steps = steps,
                  .end = end,
                  .spec_hash = pendulum().spec_hash};
  made->observation = {std::vector<std::uint8_t>(made->header.observation_rows() * 12)};
  made->step = {std::vector<std::uint8_t>(steps * 4)};
  for (std::uint32_t t = 0; t < steps; ++t) made->reward.push_back(static_cast<float>(t));
  return made;
}

class ReplayVerbs : public CliTest {
 protected:
  std::string table_file() {
    const auto file = path("replay.table");
    replay::TableOptions options;
    options.n_step = 2;
    options.discount = 0.9;
    auto table = replay::Table::create(options, pendulum()).value();
    (void)table->try_insert(chunk(0, 5, replay::EpisodeEnd::kTruncated));
    (void)table->try_insert(chunk(1, 4, replay::EpisodeEnd::kContinues));
    EXPECT_TRUE(replay::write_checkpoint(table->snapshot(), file));
    return file.string();
  }

  Json info(const std::string& file) {
    const Outcome outcome = troupe("replay info " + file + " --json");
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return Json::parse(outcome.out)["files"][0];
  }
};

TEST_F(ReplayVerbs, InfoCountsWhatATableHolds) {
  const std::string table = table_file();
  const Json json = info(table);
  EXPECT_EQ(json["kind"], "table");
  EXPECT_EQ(json["items"], 7);  // 5, and 2 of the open one
  EXPECT_EQ(json["steps"], 9);
  EXPECT_EQ(json["episodes"], 2);
  EXPECT_EQ(json["complete_episodes"], 1);
  EXPECT_EQ(json["mean_return"], 10.0);
  EXPECT_EQ(json["ledger"]["held"], 9);
  EXPECT_EQ(json["ledger"]["pending"], 2);
  EXPECT_EQ(json["selector"], "uniform");
  EXPECT_GT(json["bytes_per_transition"].get<double>(), 20);
  const Outcome lines = troupe("replay info " + table);
  EXPECT_THAT(lines.out, AllOf(HasSubstr("observation f32 [3], action f32 [1], reward f32"),
                               HasSubstr("9 inserted + 0 prefilled = 9 held + 0 removed + 0 lost"),
                               HasSubstr("no ratio")));
}

TEST_F(ReplayVerbs, ATableGoesOutToAFileAndComesBack) {
  const std::string table = table_file();
  const std::string file = path("episodes.hdf5").string(), back = path("back.table").string();
  const Outcome out = troupe("replay export " + table + " " + file + " --environment pendulum");
  EXPECT_EQ(out.code, 0) << out.err;
  EXPECT_THAT(out.out, HasSubstr("8 steps of 2 episodes, 1 of them complete"));
  const Json json = info(file);
  EXPECT_EQ(json["layout"], "troupe");
  EXPECT_EQ(json["environment"], "pendulum");
  EXPECT_EQ(json["action_units"], "policy");
  EXPECT_EQ(json["mean_return"], 10.0);
  const Outcome in = troupe("replay import " + file + " " + back +
                            " --environment pendulum --n-step 2 --discount 0.9");
  EXPECT_EQ(in.code, 0) << in.err;
  EXPECT_EQ(info(back)["items"], 7);
  EXPECT_EQ(info(back)["ledger"]["prefilled"], 9);
}

TEST_F(ReplayVerbs, AMinariDataSetHasItsMetadata) {
  const std::string table = table_file(), folder = path("swing-v0").string();
  EXPECT_EQ(troupe("replay export " + table + " " + folder + " --minari").code, 2);
  const Outcome out =
      troupe("replay export " + table + " " + folder + " --minari --environment pendulum");
  EXPECT_EQ(out.code, 0) << out.err;
  std::ifstream stream(folder + "/data/metadata.json");
  const Json json = Json::parse(stream);
  EXPECT_EQ(json["dataset_id"], "swing-v0");
  EXPECT_EQ(json["total_episodes"], 2);
  EXPECT_EQ(Json::parse(json["action_space"].get<std::string>())["high"], Json::array({1.0}));
  EXPECT_TRUE(replay::open_episode_file(folder + "/data/main_data.hdf5", pendulum()));
}

TEST_F(ReplayVerbs, WhatIsNotThereOrNotATableIsNamed) {
  const std::string table = table_file();
  const Outcome missing = troupe("replay info " + path("nothing").string());
  EXPECT_EQ(missing.code, 2);
  EXPECT_THAT(missing.err, HasSubstr("nothing"));
  const Outcome empty = troupe("replay export " + path(".").string() + " out.hdf5");
  EXPECT_EQ(empty.code, 2);
  EXPECT_THAT(empty.err, HasSubstr("is neither a run, nor a complete checkpoint"));
  const auto text = write("text", "no table at all, but long enough to have a header");
  const Outcome wrong = troupe("replay info " + text.string());
  EXPECT_EQ(wrong.code, 1);
  EXPECT_THAT(wrong.err, HasSubstr("is no replay checkpoint"));
  const Outcome other = troupe("replay export " + table + " " + path("x.hdf5").string() +
                               " --environment probe/const");
  EXPECT_EQ(other.code, 2);
  EXPECT_THAT(other.err, HasSubstr("was not written for probe/const"));
  EXPECT_EQ(troupe("replay").code, 2);
  EXPECT_EQ(troupe("replay import a.hdf5 b.table").code, 2);
}

TEST_F(ReplayVerbs, AFileOfAnotherEnvironmentIsNoImport) {
  const std::string table = table_file(), file = path("episodes.hdf5").string();
  ASSERT_EQ(troupe("replay export " + table + " " + file).code, 0);
  const Outcome in = troupe("replay import " + file + " " + path("b.table").string() +
                            " --environment probe/const");
  EXPECT_EQ(in.code, 1);
  EXPECT_THAT(in.err, AllOf(HasSubstr(file), HasSubstr("spec hash")));
}

}  // namespace
}  // namespace troupe::actors
