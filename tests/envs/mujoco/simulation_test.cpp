// Loading models, and what a Simulation says when the physics goes wrong.
#include "envs/mujoco/simulation.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tests/envs/helpers.hpp"

namespace troupe::envs::mujoco {
namespace {

using ::testing::HasSubstr;

// A folder of our own as TROUPE_MODEL_PATH while it lives.
class ModelFolder {
 public:
  ModelFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "troupe-models-XXXXXX").string();
    path_ = mkdtemp(name.data());
    setenv("TROUPE_MODEL_PATH", path_.c_str(), 1);
  }
  ~ModelFolder() {
    unsetenv("TROUPE_MODEL_PATH");
    std::filesystem::remove_all(path_);
  }
  void write(const char* file, std::string_view text) const { std::ofstream(path_ / file) << text; }
  std::string path(const char* file) const { return (path_ / file).string(); }

 private:
  std::filesystem::path path_;
};

std::unique_ptr<Simulation> walker() {
  auto simulation =
      std::make_unique<Simulation>(envs::testing::value_of(Model::load("walker.xml")));
  envs::testing::expect_ok(simulation->reset());
  return simulation;
}

TEST(Model, NamesTheMissingFileAndTheRemedy) {
  const ModelFolder folder;
  const auto env = make_env("dmc/cheetah_run");
  ASSERT_FALSE(env);
  EXPECT_EQ(env.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(env.error().message, HasSubstr(folder.path("cheetah.xml")));
  EXPECT_THAT(env.error().message, HasSubstr("TROUPE_MODEL_PATH"));
}

TEST(Model, NamesAFileThatMujocoCannotReadOrCompile) {
  const ModelFolder folder;
  folder.write("cheetah.xml", "<mujoco><worldbody>");
  EXPECT_THAT(make_env("dmc/cheetah_run").error().message,
              HasSubstr("cannot read " + folder.path("cheetah.xml")));
  folder.write("walker.xml",
               "<mujoco><worldbody><body><joint/></body></worldbody></mujoco>");  // no mass
  EXPECT_THAT(make_env("dmc/walker_walk").error().message,
              HasSubstr("cannot compile " + folder.path("walker.xml")));
}

TEST(Model, RefusesAModelOfAnotherShape) {
  const ModelFolder folder;
  folder.write("cheetah.xml",
               "<mujoco><worldbody><body><joint/><geom size='1'/></body></worldbody></mujoco>");
  const auto env = make_env("dmc/cheetah_run");
  ASSERT_FALSE(env);
  EXPECT_THAT(env.error().message, HasSubstr("1 positions, 1 velocities, 2 bodies"));
}

TEST(Model, IsCompiledOnceAndSharedWhileInUse) {
  const auto first = Model::load("walker.xml"), second = Model::load("walker.xml");
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->get(), second->get());
  EXPECT_LT((*first)->get()->ntexdata, 1000) << "textures are shrunk";
}

TEST(Simulation, ReportsBadPositionsVelocitiesAndControls) {
  const auto spoil = [](auto change) -> std::string {
    auto simulation = walker();
    change(*simulation->d());
    const Result<void> stepped = simulation->step(10);
    if (stepped) return "was stepped";
    EXPECT_EQ(stepped.error().code, ErrorCode::kInvalidEpisode);
    return stepped.error().message;
  };
  EXPECT_THAT(spoil([](mjData& d) { d.qpos[2] = std::nan(""); }), HasSubstr("MuJoCo warned"));
  EXPECT_THAT(spoil([](mjData& d) { d.qvel[2] = 1e300; }), HasSubstr("MuJoCo warned"));
  EXPECT_THAT(spoil([](mjData& d) { d.ctrl[2] = std::nan(""); }), HasSubstr("MuJoCo warned"));
  EXPECT_THAT(spoil([](mjData& d) { d.qfrc_applied[2] = 1e300; }), HasSubstr("QACC"));
}

TEST(Simulation, IsSoundAgainAfterAReset) {
  auto simulation = walker();
  simulation->d()->qvel[2] = std::nan("");
  EXPECT_FALSE(simulation->step(1));
  envs::testing::expect_ok(simulation->reset());
  envs::testing::expect_ok(simulation->step(100));
}

TEST(Simulation, RefusesStatesThatDoNotFit) {
  auto simulation = walker();
  std::vector<std::uint8_t> state;
  simulation->save(state);
  envs::testing::expect_ok(simulation->load(state));
  EXPECT_EQ(simulation->load(std::span(state).first(state.size() - 1)).error().code,
            ErrorCode::kCorrupt);
  std::fill_n(state.begin() + 8, 8, std::uint8_t{0xff});  // a NaN
  EXPECT_EQ(simulation->load(state).error().code, ErrorCode::kCorrupt);
}

TEST(Simulation, ReportsMissingElementsByName) {
  const auto model = envs::testing::value_of(Model::load("walker.xml"));
  EXPECT_TRUE(model->id(mjOBJ_BODY, "torso"));
  const Result<int> wing = model->id(mjOBJ_BODY, "wing");
  ASSERT_FALSE(wing);
  EXPECT_THAT(wing.error().message, HasSubstr("no body named 'wing'"));
}

}  // namespace
}  // namespace troupe::envs::mujoco
