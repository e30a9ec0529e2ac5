// Checkpoints, evaluations and the end of a run, walked step by step on a clock of the test's own.
#include "tests/actors/roles/run_state_world.hpp"

namespace troupe::actors {
namespace {

TEST(RunState, CountsWhatAShardTookWithIt) {
  World world(options());
  world.serve_all();
  world.report(1500, 100);
  EXPECT_EQ(world.run().actor_steps(), 1500U);
  world.end("learner-0", "killed");
  world.pass(milliseconds{300});
  world.serve("learner-0", 900, 60);  // its checkpoint held 900
  // 900 held + 600 lost: the steps were taken, the counter never falls.
  EXPECT_EQ(world.run().actor_steps(), 1500U);
  EXPECT_EQ(world.run().counters().lost_with_shard, 600U);
  EXPECT_EQ(world.run().version(), 60U);
}

TEST(RunState, CommitsACheckpointOnceEveryParticipantHasWritten) {
  World world(options());
  world.serve_all();
  world.pass(seconds{61});
  ASSERT_EQ(world.count<BeginCheckpoint>(), 1);
  const BeginCheckpoint begun = world.all<BeginCheckpoint>()[0];
  EXPECT_EQ(begun.participants, (std::vector<std::string>{"actor-0", "actor-1", "learner-0"}));
  world.run().part_written("learner-0", begun.id, "");
  world.run().part_written("actor-0", begun.id, "");
  EXPECT_EQ(world.count<CommitCheckpoint>(), 0);
  world.end("actor-1", "killed");  // its state is not needed
  EXPECT_EQ(world.count<CommitCheckpoint>(), 1);
}

TEST(RunState, DropsACheckpointWhoseLearnerDiesOrWhoseDiskIsFull) {
  World world(options());
  world.serve_all();
  world.pass(seconds{61});
  world.run().part_written("learner-0", world.all<BeginCheckpoint>()[0].id, "no space left");
  world.pass(milliseconds{100});
  EXPECT_EQ(world.count<AbandonCheckpoint>(), 1);
  EXPECT_EQ(world.run().phase(), RunState::Phase::kRunning);
  world.pass(seconds{61});
  ASSERT_EQ(world.count<BeginCheckpoint>(), 2);
  world.end("learner-0", "killed");
  EXPECT_EQ(world.count<AbandonCheckpoint>(), 2);
  EXPECT_EQ(world.count<CommitCheckpoint>(), 0);
}

TEST(RunState, EvaluatesAtEveryMultipleOfTheInterval) {
  World world(options());
  world.serve_all();
  world.report(990, 10);
  world.pass(milliseconds{100});
  EXPECT_EQ(world.count<BeginEvaluation>(), 0);
  world.report(1010, 12);
  world.pass(milliseconds{100});
  ASSERT_EQ(world.count<BeginEvaluation>(), 1);
  world.report(2500, 20);  // one at a time
  world.pass(milliseconds{100});
  EXPECT_EQ(world.count<BeginEvaluation>(), 1);
  world.run().evaluation_done(world.all<BeginEvaluation>()[0].id, 1.0, "");
  world.pass(milliseconds{100});
  EXPECT_EQ(world.count<BeginEvaluation>(), 2);
  EXPECT_EQ(world.run().counters().next_evaluation, 3000U);
}

// Answers what the end of a run asks for.
void finish(World& world) {
  world.pass(milliseconds{200});
  for (const BeginCheckpoint& begun : world.all<BeginCheckpoint>()) {
    for (const std::string& node : begun.participants) world.run().part_written(node, begun.id, "");
    world.pass(milliseconds{100});
    world.run().checkpoint_committed(begun.id, "", world.now());
  }
  world.pass(milliseconds{100});  // the evaluation comes after the checkpoint
  for (const BeginEvaluation& begun : world.all<BeginEvaluation>())
    world.run().evaluation_done(begun.id, 1.0, "");
  world.pass(milliseconds{200});
  for (const ShutdownNode& leaving : world.all<ShutdownNode>()) world.end(leaving.node, "");
  world.pass(milliseconds{200});
}

TEST(RunState, SavesEvaluatesAndLeavesWhenTheStepsAreReached) {
  World world(options());
  world.serve_all();
  world.report(5001, 200);
  finish(world);
  EXPECT_EQ(world.count<PauseNode>(), 2);
  EXPECT_EQ(world.count<CommitCheckpoint>(), 1);
  EXPECT_GE(world.count<BeginEvaluation>(), 1);
  ASSERT_EQ(world.count<EndRun>(), 1);
  EXPECT_EQ(world.all<EndRun>()[0].exit_code, 0);
}

TEST(RunState, StopsAtAReturnAndAtUpdatesToo) {
  RunOptions by_return = options();
  by_return.stop.mean_return = 800;
  World world(by_return);
  world.serve_all();
  world.report(1500, 10);
  world.pass(milliseconds{100});
  world.run().evaluation_done(world.all<BeginEvaluation>()[0].id, 801, "");
  EXPECT_EQ(world.run().phase(), RunState::Phase::kSaving);

  RunOptions by_updates = options();
  by_updates.stop.updates = 10;
  World other(by_updates);
  other.serve_all();
  other.report(100, 10);
  other.pass(milliseconds{100});
  EXPECT_EQ(other.run().phase(), RunState::Phase::kSaving);
}

TEST(RunState, WithoutEnvironmentActorsUpdatesAreItsClock) {
  RunOptions offline = options();
  offline.actors.count = 0;
  offline.replay.prefill = "episodes.hdf5";
  World world(offline);
  world.serve_all();
  EXPECT_EQ(world.count<StartNode>(), 2);  // learner and evaluator
  world.run().shard_reported(0, {0, 300, 0, 300});
  world.run().learner_reported(1200);
  world.pass(milliseconds{100});
  ASSERT_EQ(world.count<BeginEvaluation>(), 1);
  EXPECT_EQ(world.all<BeginEvaluation>()[0].actor_steps, 1200U);
  world.run().evaluation_done(world.all<BeginEvaluation>()[0].id, 1, "");
  world.run().learner_reported(5000);
  world.pass(milliseconds{200});
  EXPECT_EQ(world.run().phase(), RunState::Phase::kSaving);
  EXPECT_EQ(world.run().saved().actor_steps(), 5000U);
  EXPECT_EQ(world.run().saved().inserted(), 0U);
  // A checkpoint holds the version of the learner's part, whatever is reported meanwhile.
  world.run().learner_cut(world.all<BeginCheckpoint>().back().id, 5003);
  world.run().learner_reported(5100);
  EXPECT_EQ(world.run().saved().actor_steps(), 5003U);
  EXPECT_EQ(world.run().saved().version, 5003U);
}

TEST(RunState, ASignalSavesWithoutEvaluatingAndEndsWith130) {
  World world(options());
  world.serve_all();
  world.report(500, 20);
  world.run().stop("signal 2", true, false, world.now());
  finish(world);
  EXPECT_EQ(world.count<BeginEvaluation>(), 0);
  EXPECT_EQ(world.count<CommitCheckpoint>(), 1);
  ASSERT_EQ(world.count<EndRun>(), 1);
  EXPECT_EQ(world.all<EndRun>()[0].exit_code, 130);
}

TEST(RunState, EndsWithinTheGraceTimeWhenNobodyAnswers) {
  World world(options());
  world.serve_all();
  world.silent = {"actor-0", "actor-1", "learner-0", "evaluator-0"};
  world.run().stop("signal 15", true, false, world.now());
  world.pass(milliseconds{8200});  // stop.grace is 8 s
  EXPECT_EQ(world.count<AbandonCheckpoint>(), 1);
  std::set<std::string> killed;
  for (const KillNode& kill : world.all<KillNode>()) killed.insert(kill.node);
  EXPECT_EQ(killed.size(), 4U);
}

TEST(RunState, ASecondSignalKillsAtOnce) {
  World world(options());
  world.serve_all();
  world.run().stop("signal 2", true, false, world.now());
  world.run().stop("signal 2", true, true, world.now());
  world.pass(milliseconds{100});
  EXPECT_EQ(world.count<KillNode>(), 4);
}

TEST(RunState, ASignalDuringStartUpEndsWithoutACheckpoint) {
  World world(options());
  world.run().stop("signal 2", true, false, world.now());
  world.pass(milliseconds{200});
  EXPECT_EQ(world.count<BeginCheckpoint>(), 0);
  EXPECT_EQ(world.count<KillNode>(), 4);
}

TEST(RunState, KeepsCountingFromTheSavedStepsAndCountsWhatAShardCameBackWithout) {
  RunCounters counters;
  counters.inserted = {4000};
  counters.lost_with_shard = 100;
  World world(options());
  world.begin(counters);
  EXPECT_EQ(world.run().actor_steps(), 4100U);
  world.serve_all(1000);
  EXPECT_EQ(world.run().counters().lost_with_shard, 3100U);
  EXPECT_EQ(world.run().actor_steps(), 4100U);
}

// Reports are older than acknowledgements; the shard's own mark is not.
TEST(RunState, CountsWhatAShardInsertedAfterItsLastReport) {
  World world(options());
  world.serve_all();
  world.report(500, 20);
  world.run().shard_left(0, 620);
  world.run().shard_left(0, 610);  // what is known stays known
  EXPECT_EQ(world.run().actor_steps(), 620U);
  world.end("learner-0", "killed");
  world.pass(seconds{2});
  world.serve("learner-0", 400);
  EXPECT_EQ(world.run().counters().lost_with_shard, 220U);
  EXPECT_EQ(world.run().actor_steps(), 620U);
  const RunState::Saved saved = world.run().saved();
  EXPECT_EQ(saved.inserted(), saved.shards[0].held + saved.lost_with_shard);
}

TEST(RunState, KnowsWhichLifeOfANodeGoesOn) {
  World world(options());
  world.serve_all();
  const std::uint32_t first = world.incarnation("actor-0");
  EXPECT_TRUE(world.run().is_current("actor-0", first));
  EXPECT_FALSE(world.run().is_current("actor-0", first + 1));
  EXPECT_FALSE(world.run().is_current("actor-7", first));
  world.end("actor-0", "killed");
  EXPECT_FALSE(world.run().is_current("actor-0", first));
}

// A shard that died shortly before the end and is not back in time.
TEST(RunState, CountsAShardThatIsMissingAtTheLastCheckpointAsLost) {
  RunOptions own = options();
  own.replay.placement = "own";
  own.replay.shards = 2;
  World world(own);
  for (const char* node : {"learner-0", "actor-0", "actor-1", "evaluator-0"}) world.serve(node);
  for (std::uint32_t shard = 0; shard < 2; ++shard) {
    const std::string node = "shard-" + std::to_string(shard);
    ASSERT_TRUE(world.run().node_joined(node, world.incarnation(node), world.now()));
    world.run().role_ready(node, world.incarnation(node), shard, {0}, 0, world.now());
  }
  world.run().shard_reported(0, {300, 250, 50, 0});
  world.run().shard_reported(1, {200, 230, 0, 30});
  world.end("shard-1", "killed");
  world.run().stop("signal 2", true, false, world.now());
  world.pass(own.stop.grace / 2);
  const auto begun = world.all<BeginCheckpoint>();
  ASSERT_EQ(begun.size(), 1U);
  world.run().shard_cut(begun[0].id, 0, {310, 260, 50, 0});
  const RunState::Saved saved = world.run().saved();
  EXPECT_EQ(saved.lost_with_shard, 200U);
  EXPECT_EQ(saved.shards[1].inserted, 0U);
  EXPECT_EQ(saved.shards[1].held, 0U);
  EXPECT_EQ(saved.shards[1].prefilled, 0U);
  EXPECT_EQ(saved.inserted(), 510U);
  EXPECT_EQ(saved.inserted(), 260U + 50U + saved.lost_with_shard);
}

TEST(RunState, SavesWhatTheCutHoldsWhateverIsReportedMeanwhile) {
  World world(options());
  world.serve_all();
  world.report(500, 20);
  world.run().stop("signal 2", true, false, world.now());
  world.pass(milliseconds{100});
  const auto begun = world.all<BeginCheckpoint>();
  ASSERT_EQ(begun.size(), 1U);
  world.run().shard_cut(begun[0].id, 0, {520, 510, 10});
  world.report(530, 21);
  EXPECT_EQ(world.run().saved().actor_steps(), 520U);
  EXPECT_EQ(world.run().saved().shards[0].held, 510U);
  EXPECT_EQ(world.run().actor_steps(), 530U);
}

TEST(RunState, SavesWithoutAnEnvironmentActorThatHangs) {
  World world(options());
  world.serve_all();
  world.run().stop("signal 2", true, false, world.now());
  world.pass(milliseconds{100});
  const auto begun = world.all<BeginCheckpoint>();
  ASSERT_EQ(begun.size(), 1U);
  for (const std::string& node : begun[0].participants)
    if (node != "actor-1") world.run().part_written(node, begun[0].id, "");
  world.pass(options().stop.grace);
  EXPECT_EQ(world.count<CommitCheckpoint>(), 1);
  EXPECT_THAT(world.told("part_missing").at(0), testing::HasSubstr("actor-1"));
}

}  // namespace
}  // namespace troupe::actors
