// The coordinator's decisions about nodes, walked step by step on a clock of the test's own.
#include "actors/roles/coordinator.hpp"
#include "tests/actors/roles/run_state_world.hpp"

namespace troupe::actors {
namespace {

TEST(RunState, StartsEveryPlannedNodeOnceAsItsFirstIncarnation) {
  World world(options());
  ASSERT_EQ(world.count<StartNode>(), 4);
  for (const StartNode& start : world.all<StartNode>()) EXPECT_EQ(start.incarnation, 1U);
  RunCounters counters;
  counters.incarnations["actor-1"] = 7;
  World resumed(options());
  resumed.begin(counters);
  EXPECT_EQ(resumed.incarnation("actor-1"), 8U);
}

TEST(RunState, RefusesUnknownNodesAndOldIncarnations) {
  World world(options());
  EXPECT_FALSE(world.run().node_joined("actor-9", 1, world.now()));
  EXPECT_FALSE(world.run().node_joined("actor-0", 2, world.now()));
  world.end("actor-0", "boom");
  EXPECT_FALSE(world.run().node_joined("actor-0", 1, world.now()));
}

TEST(RunState, ReplacesADeadNodeAsANewIncarnationAfterAPause) {
  World world(options());
  world.serve_all();
  world.end("actor-1", "killed by signal 9 (SIGKILL)");
  EXPECT_EQ(world.run().state_of("actor-1"), "restarting");
  world.pass(milliseconds{300});
  EXPECT_EQ(world.incarnation("actor-1"), 2U);
  EXPECT_THAT(world.told("restart").at(0), testing::HasSubstr("SIGKILL"));
}

// What was sent while its connection was broken may be lost: nobody waits for an answer to it.
TEST(RunState, AsksANodeThatComesBackForWhatItMayNotHaveHeard) {
  World world(options());
  world.serve_all();
  world.report(1000, 10);
  world.pass(seconds{61});
  ASSERT_EQ(world.count<BeginCheckpoint>(), 1);
  ASSERT_EQ(world.count<BeginEvaluation>(), 1);
  const std::uint64_t evaluation = world.all<BeginEvaluation>().back().id;
  ASSERT_TRUE(world.run().node_joined("learner-0", world.incarnation("learner-0"), world.now()));
  ASSERT_TRUE(
      world.run().node_joined("evaluator-0", world.incarnation("evaluator-0"), world.now()));
  world.pass(milliseconds{100});
  EXPECT_THAT(world.told("checkpoint_failed"),
              testing::ElementsAre(testing::HasSubstr("the connection to learner-0 broke")));
  EXPECT_EQ(world.count<AbandonCheckpoint>(), 1);
  EXPECT_EQ(world.count<BeginEvaluation>(), 2);
  EXPECT_EQ(world.all<BeginEvaluation>().back().id, evaluation);
  EXPECT_EQ(world.run().state_of("learner-0"), "ready");
  world.pass(seconds{61});
  EXPECT_EQ(world.count<BeginCheckpoint>(), 2);
}

TEST(RunState, TriesTheLastCheckpointAgainWhenAConnectionBreaks) {
  World world(options());
  world.serve_all();
  world.run().stop("signal 2", true, false, world.now());
  world.pass(milliseconds{200});
  ASSERT_EQ(world.count<BeginCheckpoint>(), 1);
  ASSERT_TRUE(world.run().node_joined("learner-0", world.incarnation("learner-0"), world.now()));
  world.pass(milliseconds{200});
  EXPECT_EQ(world.count<BeginCheckpoint>(), 2);
  EXPECT_EQ(world.count<EndRun>(), 0);
}

TEST(RunState, FailsWhenTheOnlyLearnerHasUsedUpItsRestarts) {
  RunOptions limited = options();
  limited.supervision.restarts = 0;
  World world(limited);
  world.serve_all();
  world.end("learner-0", "exit code 3");
  for (const char* node : {"actor-0", "actor-1", "evaluator-0"}) world.end(node, "");
  world.pass(seconds{1});
  ASSERT_EQ(world.count<EndRun>(), 1);
  EXPECT_EQ(world.all<EndRun>()[0].exit_code, 1);
  EXPECT_THAT(world.all<EndRun>()[0].text, testing::HasSubstr("learner-0"));
  EXPECT_THAT(world.all<EndRun>()[0].text, testing::HasSubstr("exit code 3"));
}

TEST(RunState, EndsAtOnceWhenANodeCannotStartForAReasonThatStays) {
  World world(options());
  world.end("actor-0", "unknown environment", true);
  EXPECT_NE(world.run().phase(), RunState::Phase::kRunning);
  for (const char* node : {"actor-1", "learner-0", "evaluator-0"}) world.end(node, "");
  world.pass(seconds{1});
  EXPECT_EQ(world.count<StartNode>(), 4);
  ASSERT_EQ(world.count<EndRun>(), 1);
  EXPECT_EQ(world.all<EndRun>()[0].exit_code, 1);
  EXPECT_EQ(world.all<EndRun>()[0].text, "actor-0 cannot start: unknown environment");
}

TEST(RunState, LetsOneOfSeveralLearnersCountAndWriteAndGoesOnWithoutTheOthers) {
  RunOptions two = options();
  two.learners.count = 2;
  two.supervision.restarts = 0;
  World world(two);
  ASSERT_EQ(world.count<StartNode>(), 6);  // the shard has a process of its own
  world.serve_all(0, 40);
  EXPECT_EQ(world.run().version(), 0U);  // whoever restored most is not known yet
  world.pass(seconds{61});
  EXPECT_EQ(world.count<BeginCheckpoint>(), 0);  // nobody leads
  world.run().learner_leads("learner-1");
  world.pass(milliseconds{100});
  ASSERT_EQ(world.count<BeginCheckpoint>(), 1);
  EXPECT_THAT(world.all<BeginCheckpoint>()[0].participants,
              testing::UnorderedElementsAre("learner-1", "shard-0", "actor-0", "actor-1"));
  world.end("learner-0", "killed");
  EXPECT_EQ(world.run().phase(), RunState::Phase::kRunning);
  world.end("learner-1", "killed");
  EXPECT_NE(world.run().phase(), RunState::Phase::kRunning);
}

RunOptions served() {
  RunOptions options = actors::options();
  options.learners.count = 2;
  options.learners.sync = "parameter_servers";
  options.learners.parameter_servers = 2;
  return options;
}

TEST(RunState, CountsTheUpdatesOfParameterServersOverAllTheirLives) {
  World world(served());
  ASSERT_EQ(world.count<StartNode>(), 8);
  world.serve_all();
  world.run().learner_leads("learner-0");
  world.run().server_said(0, {100, 100});
  world.run().server_said(1, {90, 90});
  world.pass(seconds{61});
  ASSERT_EQ(world.count<BeginCheckpoint>(), 1);
  EXPECT_THAT(world.all<BeginCheckpoint>()[0].participants,
              testing::UnorderedElementsAre("learner-0", "parameter_server-0", "parameter_server-1",
                                            "shard-0", "actor-0", "actor-1"));
  const std::uint64_t id = world.all<BeginCheckpoint>()[0].id;
  world.run().server_cut(id, 0, {120, 120});
  world.run().server_said(0, {150, 150});
  EXPECT_EQ(world.run().saved().sent[0], (UpdateCounts{120, 120, 0}));
  EXPECT_EQ(world.run().saved().sent[1], (UpdateCounts{90, 90, 0}));
  world.run().server_said(0, {160, 160});  // its mark
  world.end("parameter_server-0", "killed");
  EXPECT_EQ(world.count<AbandonCheckpoint>(), 1);
  world.pass(seconds{1});
  world.serve("parameter_server-0", 0, 110);
  EXPECT_THAT(world.told("rolled_back"),
              testing::ElementsAre("parameter_server-0 came back without the 50 updates applied "
                                   "since its last snapshot"));
  world.run().server_said(0, {115, 5});
  EXPECT_EQ(world.run().saved().sent[0], (UpdateCounts{165, 115, 50}));
  world.run().stop("a test", true, false, world.now());
  world.pass(seconds{30});
  EXPECT_THAT(
      world.told("updates"),
      testing::ElementsAre("updates: parameter_server-0 165 sent = 115 applied + 50 rolled "
                           "back; parameter_server-1 90 sent = 90 applied + 0 rolled back"));
}

TEST(RunState, WritesNoCheckpointThatLacksAParameterServer) {
  World world(served());
  world.serve_all();
  world.run().learner_leads("learner-0");
  world.end("parameter_server-1", "killed");
  world.run().stop("a test", true, false, world.now());
  world.pass(seconds{10});
  EXPECT_EQ(world.count<BeginCheckpoint>(), 0);
  EXPECT_GE(world.run().phase(), RunState::Phase::kLeaving);
}

TEST(RunState, EndsParameterServersOnceNoLearnerIsLeft) {
  World world(served());
  world.serve_all();
  world.run().learner_leads("learner-0");
  world.run().stop("a test", true, false, world.now());
  world.pass(seconds{7});  // nobody writes a part
  ASSERT_EQ(world.run().phase(), RunState::Phase::kLeaving);
  const auto ended = [&](const std::string& node) {
    const auto all = world.all<ShutdownNode>();
    return std::any_of(all.begin(), all.end(), [&](const auto& one) { return one.node == node; });
  };
  EXPECT_TRUE(ended("learner-1"));
  EXPECT_FALSE(ended("parameter_server-0"));
  world.end("learner-0", "");
  world.pass(milliseconds{100});
  EXPECT_FALSE(ended("parameter_server-0"));
  world.end("learner-1", "");
  world.pass(milliseconds{100});
  EXPECT_TRUE(ended("parameter_server-0"));
  EXPECT_TRUE(ended("parameter_server-1"));
}

TEST(RunState, FailsWithoutAParameterServer) {
  RunOptions options = served();
  options.supervision.restarts = 0;
  World world(options);
  world.serve_all();
  world.end("parameter_server-1", "killed");
  EXPECT_THAT(world.told("failed"),
              testing::ElementsAre("parameter_server-1 cannot be kept alive: killed"));
}

TEST(RunState, LimitsTheOnlyShardToTheStepsThatTheRunStillLacks) {
  World world(options());
  world.serve_all(1000);
  world.pass(milliseconds{100});
  ASSERT_EQ(world.count<LimitSteps>(), 1);
  EXPECT_EQ(world.all<LimitSteps>()[0].inserted, std::vector<std::uint64_t>{5000});
  world.report(3000, 1);
  world.pass(milliseconds{100});
  EXPECT_EQ(world.count<LimitSteps>(), 1);  // still true
  world.end("learner-0", "killed");
  world.pass(milliseconds{300});
  world.serve("learner-0", 1500);  // 1500 steps are lost, but they count
  world.pass(milliseconds{100});
  EXPECT_EQ(world.all<LimitSteps>().back().inserted, std::vector<std::uint64_t>{3500});
}

TEST(RunState, DealsTheStepsThatAreLeftToSeveralShards) {
  RunOptions several = options();
  several.replay.shards = 2;
  World world(several);
  world.serve_all();
  world.pass(milliseconds{100});
  EXPECT_EQ(world.all<LimitSteps>().back().inserted, (std::vector<std::uint64_t>{2500, 2500}));
  world.run().shard_reported(0, {2500, 2500, 0}, 2500);
  world.run().shard_reported(1, {300, 300, 0}, 2500);
  world.pass(milliseconds{100});
  // What the slow one gives back is dealt out once it says that it obeys.
  EXPECT_EQ(world.all<LimitSteps>().back().inserted, (std::vector<std::uint64_t>{2500, 1400}));
  world.run().shard_reported(1, {350, 350, 0}, 1400);
  world.pass(milliseconds{100});
  EXPECT_EQ(world.all<LimitSteps>().back().inserted, (std::vector<std::uint64_t>{3050, 1950}));
}

TEST(RunState, GoesOnWithoutAHopelessEnvironmentActorWhileEnoughOthersLive) {
  RunOptions limited = options();
  limited.supervision.restarts = 0;
  World world(limited);
  world.serve_all();
  world.end("actor-0", "abort");
  EXPECT_EQ(world.run().phase(), RunState::Phase::kRunning);
  world.end("actor-1", "abort");  // now fewer than actors.min
  EXPECT_NE(world.run().phase(), RunState::Phase::kRunning);
}

TEST(RunState, KillsAFrozenNodeAfterTheStatedSilence) {
  World world(options());
  world.serve_all();
  world.silent.insert("actor-0");
  world.pass(seconds{5});
  EXPECT_EQ(world.told("silent").size(), 1U);
  EXPECT_EQ(world.count<KillNode>(), 0);
  world.pass(seconds{5});
  ASSERT_EQ(world.count<KillNode>(), 1);
  EXPECT_EQ(world.all<KillNode>()[0].node, "actor-0");
}

TEST(RunState, KillsAnEnvironmentActorThatHangsInAStepThoughItAnswersPings) {
  World world(options());
  world.serve_all();
  world.run().pong("actor-0", 1, 1, 29000, "a step of the environment", world.now());
  EXPECT_TRUE(world.run().take_actions().empty());
  world.run().pong("actor-0", 1, 1, 31000, "a step of the environment", world.now());
  const auto actions = world.run().take_actions();
  ASSERT_EQ(actions.size(), 2U);  // told, killed
  EXPECT_THAT(std::get<Tell>(actions[0]).text, testing::HasSubstr("hung for 31 s"));
  EXPECT_EQ(std::get<KillNode>(actions[1]).node, "actor-0");
}

TEST(RunState, GivesUpOnANodeThatNeverConnects) {
  World world(options());
  world.pass(seconds{31});
  EXPECT_EQ(world.count<KillNode>(), 4);
}

}  // namespace
}  // namespace troupe::actors
