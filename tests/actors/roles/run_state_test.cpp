// The coordinator's decisions, walked step by step on a clock of the test's own.
#include "actors/roles/run_state.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe::actors {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// A run state whose actions are carried out at once by a well-behaved world, unless a test
// interferes.
class World {
 public:
  explicit World(RunOptions options) : options_(std::move(options)) { begin(RunCounters{}); }

  void begin(RunCounters counters) {
    run_.emplace(options_, plan_topology(options_), std::move(counters), now_);
    take();
  }
  RunState& run() { return *run_; }
  RunState::Time now() const { return now_; }

  // All started nodes join and serve; learners restore `inserted` steps and `version`.
  void serve_all(std::uint64_t inserted = 0, std::uint64_t version = 0) {
    for (const auto& [node, incarnation] : std::map(incarnations_)) serve(node, inserted, version);
  }
  void serve(const std::string& node, std::uint64_t inserted = 0, std::uint64_t version = 0) {
    const bool learner = node.starts_with("learner");
    EXPECT_TRUE(run_->node_joined(node, incarnations_[node], now_));
    run_->role_ready(node, incarnations_[node], 0,
                     learner ? std::vector<std::uint64_t>{inserted} : std::vector<std::uint64_t>{},
                     version, now_);
    take();
  }
  void end(const std::string& node, const std::string& reason) {
    run_->node_ended(node, incarnations_[node], reason, now_);
    take();
  }
  // Passes time in ticks of 100 ms; answers every ping except of the nodes in `silent`.
  void pass(milliseconds time) {
    for (milliseconds passed{0}; passed < time; passed += milliseconds{100}) {
      now_ += milliseconds{100};
      run_->tick(now_);
      take();
    }
  }
  template <class T>
  std::vector<T> all() const {
    std::vector<T> found;
    for (const Action& action : log_)
      if (const T* hit = std::get_if<T>(&action)) found.push_back(*hit);
    return found;
  }
  template <class T>
  int count() const {
    return static_cast<int>(all<T>().size());
  }
  std::vector<std::string> told(const std::string& kind) const {
    std::vector<std::string> texts;
    for (const Tell& line : all<Tell>())
      if (line.kind == kind) texts.push_back(line.text);
    return texts;
  }
  void report(std::uint64_t inserted, std::uint64_t version) {
    run_->shard_reported(0, {inserted, inserted, 0});
    run_->learner_reported(version);
  }
  std::uint32_t incarnation(const std::string& node) { return incarnations_[node]; }

  std::set<std::string> silent;

 private:
  void take() {
    for (const Action& action : run_->take_actions()) {
      log_.push_back(action);
      if (const auto* start = std::get_if<StartNode>(&action))
        incarnations_[start->node] = start->incarnation;
      if (const auto* ping = std::get_if<PingNode>(&action); ping && !silent.contains(ping->node))
        run_->pong(ping->node, incarnations_[ping->node], ping->number, 0, "", now_);
    }
  }

  RunOptions options_;
  RunState::Time now_{seconds{1000}};
  std::optional<RunState> run_;
  std::map<std::string, std::uint32_t> incarnations_;
  std::vector<Action> log_;
};

RunOptions options() {
  RunOptions options;
  options.environment.name = "probe/const";
  options.actors.count = 2;
  options.evaluation.every = 1000;
  options.checkpoint.every = seconds{60};
  options.stop.actor_steps = 5000;
  return options;
}

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
