// The program as its user meets it: run with a command line, judged by exit code, stdout and
// stderr.
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/actors/cli/cli_fixture.hpp"

namespace troupe::actors {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

std::string config(const std::string& name) {
  return std::string(TROUPE_CONFIGS) + "/" + name + ".yaml";
}

TEST_F(CliTest, HelpListsTheVerbsButNotTheHiddenOne) {
  const Outcome outcome = troupe("--help");
  EXPECT_EQ(outcome.code, 0);
  for (const char* verb : {"run", "check", "watch", "status", "scale", "drain", "stop", "replay",
                           "bench", "help", "version"}) {
    EXPECT_THAT(outcome.out, HasSubstr(verb));
  }
  EXPECT_THAT(outcome.out, Not(HasSubstr("One node of a run")));
}

TEST_F(CliTest, EveryVerbHasAnExample) {
  for (const char* verb : {"run",
                           "check",
                           "watch",
                           "status",
                           "scale",
                           "drain",
                           "stop",
                           "replay",
                           "replay export",
                           "replay info",
                           "replay import",
                           "bench",
                           "bench env",
                           "bench learner",
                           "certificates",
                           "certificates init",
                           "certificates issue",
                           "certificates show",
                           "certificates test",
                           "deploy",
                           "deploy slurm",
                           "deploy kubernetes",
                           "help",
                           "help config",
                           "help environments",
                           "version"}) {
    const Outcome outcome = troupe(std::string(verb) + " --help");
    EXPECT_EQ(outcome.code, 0) << verb;
    EXPECT_THAT(outcome.out, HasSubstr("Example: troupe " + std::string(verb))) << outcome.out;
  }
}

TEST_F(CliTest, NothingToDoIsBadUsage) {
  const Outcome outcome = troupe("");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.out, testing::IsEmpty());
  EXPECT_THAT(outcome.err, HasSubstr("check"));
}

TEST_F(CliTest, AnUnknownVerbIsAnsweredWithTheNearest) {
  const Outcome outcome = troupe("chekc configs/a.yaml");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, StartsWith("troupe: unknown verb chekc; did you mean check?\n"));
  EXPECT_THAT(outcome.err, HasSubstr("Try `troupe --help`."));
}

TEST_F(CliTest, AnUnknownNestedVerbIsAnsweredWithTheNearest) {
  const Outcome outcome = troupe("bench enf");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, StartsWith("troupe bench: unknown verb enf; did you mean env?\n"));
}

TEST_F(CliTest, AnUnknownOptionIsAnsweredWithTheNearest) {
  const Outcome outcome = troupe("check " + config("smoke") + " --prnit");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err,
              StartsWith("troupe check: unknown option --prnit; did you mean --print?"));
}

TEST_F(CliTest, AMissingNestedVerbIsAskedFor) {
  const Outcome outcome = troupe("bench");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err,
              StartsWith("troupe bench: a verb is required, one of env learner replay\n"));
}

TEST_F(CliTest, HelpNamesTheWholeCommandOnce) {
  EXPECT_THAT(troupe("--help").out, HasSubstr("Usage: troupe [OPTIONS]"));
  EXPECT_THAT(troupe("bench env --help").out, HasSubstr("Usage: troupe bench env [OPTIONS]"));
  EXPECT_THAT(troupe("help run").out, HasSubstr("Usage: troupe run [OPTIONS]"));
}

TEST_F(CliTest, AMissingArgumentIsNamed) {
  const Outcome outcome = troupe("check");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, AllOf(StartsWith("troupe check: CONFIG"), HasSubstr("required")));
}

TEST_F(CliTest, CheckShowsNodesPortsAndMemory) {
  const Outcome outcome = troupe("check " + config("cartpole_swingup"));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("dmc/cartpole_swingup: 5 numbers observed"),
                                 HasSubstr("learner-0"), HasSubstr("actor-1"),
                                 HasSubstr("evaluator-0"), HasSubstr("tcp://127.0.0.1:*")));
  EXPECT_THAT(outcome.out, ContainsRegex("MiB +tables: 1000000 items x"));
  EXPECT_THAT(outcome.out, ContainsRegex("MiB +in all"));
}

TEST_F(CliTest, TheMemoryTermsAddUp) {
  const Outcome outcome = troupe("check " + config("smoke") + " --json --set actors.count=3");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto report = nlohmann::json::parse(outcome.out);
  double sum = 0;
  for (const auto& term : report["memory"]["terms"]) sum += term["bytes"].get<double>();
  EXPECT_GT(sum, 0);
  EXPECT_DOUBLE_EQ(sum, report["memory"]["total"].get<double>());
  EXPECT_EQ(report["nodes"].size(), 6u);  // coordinator, learner, three actors, evaluator
  EXPECT_EQ(report["configuration"]["origins"]["actors.count"], "command line");
}

TEST_F(CliTest, CheckPrintsAConfigurationThatItAcceptsAgain) {
  const Outcome first = troupe("check " + config("pendulum") + " --print --set seed=0");
  ASSERT_EQ(first.code, 0) << first.err;
  EXPECT_THAT(first.out, HasSubstr("seed: 0  # command line\n"));
  const std::string again = write("again.yaml", first.out).string();
  const Outcome second = troupe("check " + again + " --json");
  ASSERT_EQ(second.code, 0) << second.err;
  const Outcome original = troupe("check " + config("pendulum") + " --json --set seed=0");
  EXPECT_EQ(nlohmann::json::parse(second.out)["configuration"]["hash"],
            nlohmann::json::parse(original.out)["configuration"]["hash"]);
}

TEST_F(CliTest, OverridesMayHoldListsAndBeRepeated) {
  const Outcome outcome =
      troupe("check --set 'd4pg.policy=[32, 16]' --set seed=3 " + config("pendulum") + " --print");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("policy: [32, 16]"), HasSubstr("seed: 3")));
}

TEST_F(CliTest, ABadConfigurationIsRefusedWithEveryMistake) {
  const std::string file =
      write("bad.yaml", "environment: {name: pendulum}\nsed: 1\nd4pg: {batch: many}\n").string();
  const Outcome outcome = troupe("check " + file);
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.out, testing::IsEmpty());
  EXPECT_THAT(outcome.err,
              HasSubstr("troupe: " + file + ":2: unknown key sed; did you mean seed?\n"));
  EXPECT_THAT(outcome.err, HasSubstr("troupe: " + file + ":3: d4pg.batch expects an integer"));
}

TEST_F(CliTest, AMissingFileIsNamed) {
  const Outcome outcome = troupe("check nowhere.yaml");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("troupe: nowhere.yaml: no such file"));
}

TEST_F(CliTest, AnUnknownTaskIsNamedWithItsPlace) {
  const std::string file =
      write("task.yaml", "\nenvironment: {name: dmc/cartpole_swingpu}\n").string();
  const Outcome outcome = troupe("check " + file);
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err,
              AllOf(HasSubstr("task.yaml:2: environment.name"), HasSubstr("dmc/cartpole_swingup")));
}

TEST_F(CliTest, HelpExplainsKeysTasksAndVerbs) {
  EXPECT_THAT(troupe("help config").out, HasSubstr("d4pg.learning_rate: 1e-4"));
  EXPECT_THAT(troupe("help config d4pg.batch").out, HasSubstr("an integer, 1 to 1048576"));
  EXPECT_TRUE(nlohmann::json::accept(troupe("help config --schema").out));
  EXPECT_THAT(troupe("help environments").out, HasSubstr("dmc/walker_walk"));
  EXPECT_THAT(troupe("help check").out, HasSubstr("Example: troupe check"));
  EXPECT_THAT(troupe("help").out, HasSubstr("watch"));
  const Outcome unknown_key = troupe("help config d4pg.bach");
  EXPECT_EQ(unknown_key.code, 2);
  EXPECT_THAT(unknown_key.err, HasSubstr("did you mean d4pg.batch?"));
  const Outcome unknown_verb = troupe("help wacth");
  EXPECT_EQ(unknown_verb.code, 2);
  EXPECT_THAT(unknown_verb.err, HasSubstr("did you mean watch?"));
}

TEST_F(CliTest, VersionsOfLibrariesAreKnown) {
  EXPECT_THAT(troupe("--version").out, StartsWith("troupe 0."));
  const auto versions = nlohmann::json::parse(troupe("version --json").out);
  for (const char* library : {"troupe", "CAF", "ZeroMQ", "MuJoCo", "LibTorch", "yaml-cpp"}) {
    EXPECT_THAT(versions[library].get<std::string>(), ContainsRegex("^[0-9]+\\.[0-9]+")) << library;
  }
}

TEST_F(CliTest, AnUnknownBenchmarkTaskIsBadUsage) {
  const Outcome outcome = troupe("bench env dmc/walker_wlak");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("dmc/walker_walk"));
}

}  // namespace
}  // namespace troupe::actors
