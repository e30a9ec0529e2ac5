// A resumed run keeps its saved options; the command line changes them; nothing differs in silence.
#include "actors/config/resume.hpp"

#include <gmock/gmock.h>

#include "actors/config/printer.hpp"
#include "tests/actors/config/config_files.hpp"

namespace troupe::actors {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class ResumeTest : public ConfigFiles {
 protected:
  ResumeTest() {
    RunOptions options;
    options.environment.name = "pendulum";
    options.seed = 0;
    options.learners.learner.d4pg.batch = 64;
    saved_ = write("run/config.yaml", print_yaml(options));
  }
  ResumedConfig resume(const std::string& text, const std::vector<std::string>& overrides = {}) {
    auto resumed = resume_config(saved_, write("config.yaml", text), overrides);
    EXPECT_TRUE(resumed) << resumed.error().message;
    return resumed.value_or(ResumedConfig{});
  }
  std::filesystem::path saved_;
};

TEST_F(ResumeTest, TheSameConfigHasNoDifferences) {
  const auto resumed = resume("environment: {name: pendulum}\nseed: 0\nd4pg: {batch: 64}\n");
  EXPECT_THAT(resumed.lines, IsEmpty());
  EXPECT_EQ(resumed.config.options.seed, 0);
}

TEST_F(ResumeTest, ARunDoesNotChangeItsClock) {
  const auto resumed =
      resume_config(saved_, write("config.yaml", "environment: {name: pendulum}\n"),
                    {"actors.count=0", "replay.prefill=episodes.hdf5"});
  ASSERT_FALSE(resumed);
  EXPECT_THAT(resumed.error().message, HasSubstr("actors.count: this run was begun with 2"));
}

TEST_F(ResumeTest, SavedTablesKeepTheirPriorities) {
  const auto resumed =
      resume_config(saved_, write("config.yaml", "environment: {name: pendulum}\n"),
                    {"replay.selector=prioritised"});
  ASSERT_FALSE(resumed);
  EXPECT_THAT(resumed.error().message, HasSubstr("replay.selector: this run's saved tables"));
  EXPECT_THAT(resumed.error().message, HasSubstr("replay.prefill"));
  // The weights may change, and what no table was saved with may, too.
  EXPECT_TRUE(resume_config(saved_, write("config.yaml", "environment: {name: pendulum}\n"),
                            {"replay.importance_exponent=1", "replay.priority_exponent=0.5"}));
}

TEST_F(ResumeTest, OptimizerStateStaysWhereItLies) {
  const auto resumed = resume_config(
      saved_, write("config.yaml", "environment: {name: pendulum}\n"),
      {"learners.sync=parameter_servers", "learners.count=2", "learners.parameter_servers=2"});
  ASSERT_FALSE(resumed);
  EXPECT_THAT(resumed.error().message, HasSubstr("lies with 0 parameter servers, not 2"));
}

TEST_F(ResumeTest, SavedOptionsWinOverAChangedFile) {
  const auto resumed = resume("environment: {name: pendulum}\nseed: 0\nd4pg: {batch: 128}\n");
  EXPECT_EQ(resumed.config.options.learners.learner.d4pg.batch, 64);
  EXPECT_THAT(resumed.lines,
              ElementsAre(HasSubstr("d4pg.batch: this run was saved with 64, " +
                                    path("config.yaml").string() +
                                    ":3 says 128; the saved value counts, --set d4pg.batch=128")));
}

TEST_F(ResumeTest, TheCommandLineWinsOverSavedOptions) {
  const auto resumed =
      resume("environment: {name: pendulum}\nseed: 0\nd4pg: {batch: 64}\n", {"d4pg.batch=128"});
  EXPECT_EQ(resumed.config.options.learners.learner.d4pg.batch, 128);
  EXPECT_THAT(resumed.lines,
              ElementsAre(HasSubstr("d4pg.batch: this run was saved with 64, command "
                                    "line says 128; the command line counts")));
}

TEST_F(ResumeTest, ADefaultThatDiffersIsADifferenceToo) {
  const auto resumed = resume("environment: {name: pendulum}\nseed: 0\n");
  EXPECT_EQ(resumed.config.options.learners.learner.d4pg.batch, 64);
  EXPECT_THAT(resumed.lines, ElementsAre(HasSubstr("default says 256")));
}

TEST_F(ResumeTest, ABrokenFileOnEitherSideIsNamed) {
  write("run/config.yaml", "sed: 1\n");
  const auto resumed = resume_config(saved_, write("config.yaml", "seed: 1\n"), {});
  ASSERT_FALSE(resumed);
  EXPECT_THAT(resumed.error().message, HasSubstr("run/config.yaml:1: unknown key sed"));
}

}  // namespace
}  // namespace troupe::actors
