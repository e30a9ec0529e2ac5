// A run that grows and shrinks: who comes, who leaves, what counts.
#include <algorithm>

#include "actors/roles/coordinator.hpp"
#include "tests/actors/roles/run_state_world.hpp"

namespace troupe::actors {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

RunOptions own_shards() {
  RunOptions wanted = options();
  wanted.replay.placement = "own";
  wanted.replay.shards = 2;
  return wanted;
}

std::vector<std::string> names(const RunState& run, const std::string& role) {
  std::vector<std::string> found;
  for (const NodePlan& plan : run.plan())
    if (plan.role == role) found.push_back(plan.name);
  return found;
}

std::vector<std::string> drained(const World& world) {
  std::vector<std::string> nodes;
  for (const DrainNode& action : world.all<DrainNode>()) nodes.push_back(action.node);
  return nodes;
}

RunCounters saved(World& world) {
  const auto counters = counters_from_json(counters_json(world.run(), world.now()));
  EXPECT_TRUE(counters) << counters.error().message;
  return counters.value_or(RunCounters{});
}

void expect_balance(const ShardLedger& ledger, std::uint64_t lost) {
  EXPECT_EQ(ledger.inserted + ledger.prefilled, ledger.held + ledger.removed + lost);
}

TEST(RunStateScale, AddsShardsAndActorsWhileTheRunGoesOn) {
  World world(own_shards());
  world.serve_all();
  const auto scaled = world.run().scale({{"shards", 3}, {"actors", 5}}, world.now());
  ASSERT_TRUE(scaled) << scaled.error().message;
  EXPECT_EQ(*scaled, "actors: 2 -> 5\nshards: 2 -> 3");
  EXPECT_EQ(world.run().shards().size(), 3U);
  world.pass(milliseconds{200});
  for (const char* name : {"shard-2", "actor-2", "actor-4"}) {
    EXPECT_EQ(world.incarnation(name), 1U) << name;
    world.serve(name);
    EXPECT_EQ(world.run().state_of(name), "ready") << name;
  }
  world.run().shard_reported(2, {700, 700, 0});
  EXPECT_EQ(world.run().actor_steps(), 700U);
  // It is kept like the others, and every shard gets its part of what is left.
  world.pass(milliseconds{200});
  EXPECT_EQ(world.all<LimitSteps>().back().inserted.size(), 3U);
  world.end("shard-2", "killed by signal 9 (SIGKILL)");
  world.pass(seconds{5});
  EXPECT_EQ(world.incarnation("shard-2"), 2U);
}

TEST(RunStateScale, SaysWhyNotAndThenDoesNothing) {
  World world(own_shards());
  world.serve_all();
  const auto why = [&](std::map<std::string, std::uint32_t> counts) {
    const auto scaled = world.run().scale(counts, world.now());
    return scaled ? "done" : scaled.error().message;
  };
  EXPECT_THAT(why({{"shards", 0}}), HasSubstr("the run needs one"));
  EXPECT_THAT(why({{"shards", 257}}), HasSubstr("more than 256"));
  EXPECT_THAT(why({{"actors", 65}}), HasSubstr("actors.max = 64"));
  EXPECT_THAT(why({{"actors", 0}}), HasSubstr("fewer than actors.min = 1"));
  EXPECT_THAT(why({{"learners", 2}}), HasSubstr("learners.count = 1; learners.max is"));
  EXPECT_THAT(why({{"evaluators", 2}}), HasSubstr("not \"evaluators\""));
  EXPECT_THAT(why({{"actors", 5}, {"shards", 0}}), HasSubstr("the run needs one"));
  EXPECT_EQ(names(world.run(), "environment").size(), 2U);
  world.run().stop("stop.actor_steps reached", false, false, world.now());
  EXPECT_THAT(why({{"shards", 3}}), HasSubstr("stopping: stop.actor_steps reached"));
  World together(options());
  EXPECT_THAT(together.run().scale({{"shards", 2}}, together.now()).error().message,
              HasSubstr("live in the learner's process"));
}

TEST(RunStateScale, LetsActorsFinishAndThenForgetsThem) {
  World world(options());
  world.serve_all();
  ASSERT_TRUE(world.run().scale({{"actors", 8}}, world.now()));
  world.pass(milliseconds{200});
  for (int i = 2; i < 8; ++i) world.serve("actor-" + std::to_string(i));
  ASSERT_TRUE(world.run().scale({{"actors", 3}}, world.now()));
  world.pass(milliseconds{200});
  EXPECT_THAT(drained(world), ElementsAre("actor-3", "actor-4", "actor-5", "actor-6", "actor-7"));
  EXPECT_EQ(world.run().state_of("actor-5"), "leaving");
  for (int i = 3; i < 7; ++i) world.end("actor-" + std::to_string(i), "");
  world.pass(seconds{7});
  EXPECT_EQ(world.count<KillNode>(), 0);
  world.pass(seconds{2});  // stop.grace is over
  ASSERT_EQ(world.count<KillNode>(), 1);
  EXPECT_EQ(world.all<KillNode>().front().node, "actor-7");
  world.end("actor-7", "killed by signal 9 (SIGKILL)");
  world.pass(seconds{20});
  EXPECT_THAT(names(world.run(), "environment"), ElementsAre("actor-0", "actor-1", "actor-2"));
  EXPECT_TRUE(world.told("restart").empty());
  EXPECT_EQ(world.run().phase(), RunState::Phase::kRunning);
  // One that comes again is a new life that begins with nothing of the old one's.
  ASSERT_TRUE(world.run().scale({{"actors", 4}}, world.now()));
  world.pass(milliseconds{100});
  EXPECT_EQ(world.incarnation("actor-3"), 2U);
  EXPECT_TRUE(world.run().begins_empty("actor-3"));
  EXPECT_FALSE(world.run().begins_empty("actor-0"));
}

TEST(RunStateScale, DrainsTheNodeThatIsNamedAndFillsItsPlaceLater) {
  World world(options());
  world.serve_all();
  const auto said = world.run().drain("actor-0", world.now());
  ASSERT_TRUE(said) << said.error().message;
  EXPECT_EQ(*said, "actor-0 is drained; actors: 2 -> 1");
  world.pass(milliseconds{100});
  world.end("actor-0", "");
  EXPECT_THAT(names(world.run(), "environment"), ElementsAre("actor-1"));
  EXPECT_EQ(saved(world).scaled.actors.scaled, 1U);
  const auto why = [&](const std::string& node) {
    const auto drain = world.run().drain(node, world.now());
    return drain ? "done" : drain.error().message;
  };
  EXPECT_THAT(why("actor-1"), HasSubstr("stays: 0 actors are fewer than actors.min = 1"));
  EXPECT_THAT(why("actor-7"), HasSubstr("the nodes are learner-0, actor-1, evaluator-0"));
  EXPECT_THAT(why("evaluator-0"), HasSubstr("needs its evaluator-0"));
  EXPECT_THAT(why("learner-0"), HasSubstr("the run needs one"));
  ASSERT_TRUE(world.run().scale({{"actors", 2}}, world.now()));
  world.pass(milliseconds{100});
  EXPECT_EQ(world.incarnation("actor-0"), 2U);
}

TEST(RunStateScale, OneThatWaitsForItsRestartLeavesAtOnce) {
  World world(options());
  world.serve_all();
  world.end("actor-1", "exit code 3");
  ASSERT_TRUE(world.run().scale({{"actors", 1}}, world.now()));
  EXPECT_THAT(names(world.run(), "environment"), ElementsAre("actor-0"));
  world.pass(seconds{5});
  EXPECT_EQ(world.incarnation("actor-1"), 1U);
}

TEST(RunStateScale, CountsWhatAShardHeldAsRemovedWithIt) {
  World world(own_shards());
  world.serve_all();
  world.pass(milliseconds{100});  // each gets half of the steps
  world.run().shard_reported(0, {1000, 900, 100});
  world.run().shard_reported(1, {600, 500, 150, 50}, 2500);
  ASSERT_TRUE(world.run().scale({{"shards", 1}}, world.now()));
  world.pass(milliseconds{200});
  EXPECT_THAT(drained(world), ElementsAre("shard-1"));
  EXPECT_THAT(world.run().leaving_shards(), ElementsAre(1U));
  world.run().shard_left(1, 640);  // its mark: the last report was older
  world.end("shard-1", "");
  EXPECT_THAT(world.run().gone_shards(), ElementsAre(1U));
  EXPECT_THAT(names(world.run(), "shard"), ElementsAre("shard-0"));
  EXPECT_EQ(world.run().actor_steps(), 1640U);
  const ShardLedger ledger = world.run().ledger();
  expect_balance(ledger, 0);
  EXPECT_EQ(ledger.removed, 100U + 640U + 50U);
  EXPECT_EQ(ledger.prefilled, 50U);
  EXPECT_THAT(world.told("removed_with_shard"),
              ElementsAre("the 540 steps that shard-1 held are removed with it"));
  // All that the run lacks is the other one's now.
  world.pass(milliseconds{200});
  EXPECT_THAT(world.all<LimitSteps>().back().inserted, ElementsAre(5000U - 640U, 0U));
}

TEST(RunStateScale, AShardThatComesAgainBeginsEmptyAndLosesNothing) {
  World world(own_shards());
  world.serve_all();
  world.run().shard_reported(1, {600, 600, 0});
  ASSERT_TRUE(world.run().drain("shard-1", world.now()));
  world.pass(milliseconds{100});
  world.end("shard-1", "");
  ASSERT_TRUE(world.run().scale({{"shards", 2}}, world.now()));
  world.pass(milliseconds{100});
  EXPECT_TRUE(world.run().begins_empty("shard-1"));
  EXPECT_TRUE(world.run().gone_shards().empty());
  ASSERT_TRUE(world.run().node_joined("shard-1", 2, world.now()));
  world.run().role_ready("shard-1", 2, 1, {0}, 0, world.now());
  world.run().shard_reported(1, {40, 40, 0});
  EXPECT_EQ(world.run().actor_steps(), 640U);
  EXPECT_EQ(world.run().counters().lost_with_shard, 0U);
  expect_balance(world.run().ledger(), 0);
}

TEST(RunStateScale, AShardLeavesBetweenTwoCheckpointsAndIsFollowedByOne) {
  World world(own_shards());
  world.serve_all();
  world.pass(seconds{61});
  ASSERT_EQ(world.count<BeginCheckpoint>(), 1);
  ASSERT_TRUE(world.run().scale({{"shards", 1}}, world.now()));
  world.pass(seconds{1});
  EXPECT_TRUE(drained(world).empty());
  const auto first = world.all<BeginCheckpoint>().front();
  for (const std::string& node : first.participants) world.run().part_written(node, first.id, "");
  world.run().checkpoint_committed(first.id, "", world.now());
  world.pass(milliseconds{100});
  EXPECT_THAT(drained(world), ElementsAre("shard-1"));
  world.pass(seconds{2});
  EXPECT_EQ(world.count<BeginCheckpoint>(), 1);
  world.end("shard-1", "");
  world.pass(milliseconds{200});
  ASSERT_EQ(world.count<BeginCheckpoint>(), 2);  // a minute early
  const auto participants = world.all<BeginCheckpoint>().back().participants;
  EXPECT_EQ(std::count(participants.begin(), participants.end(), "shard-1"), 0);
}

TEST(RunStateScale, AStopWaitsForAShardThatLeaves) {
  World world(own_shards());
  world.serve_all();
  ASSERT_TRUE(world.run().scale({{"shards", 1}}, world.now()));
  world.pass(milliseconds{100});
  world.run().stop("signal 2", true, false, world.now());
  world.pass(seconds{1});
  EXPECT_EQ(world.count<BeginCheckpoint>(), 0);
  world.pass(seconds{2});  // a quarter of stop.grace is over
  EXPECT_EQ(world.all<KillNode>().front().node, "shard-1");
  world.end("shard-1", "killed by signal 9 (SIGKILL)");
  world.pass(milliseconds{200});
  EXPECT_EQ(world.count<BeginCheckpoint>(), 1);
}

TEST(RunStateScale, LearnersLeaveAndComeAsFarAsLearnersMaxAllows) {
  RunOptions wanted = options();
  wanted.learners.max = 4;
  wanted.learners.learner.d4pg.batch = 32;
  World world(wanted);
  EXPECT_THAT(names(world.run(), "shard"),
              ElementsAre("shard-0"));  // they are apart from the start
  world.serve_all();
  world.run().learner_leads("learner-0");
  ASSERT_TRUE(world.run().scale({{"learners", 2}}, world.now()));
  world.pass(milliseconds{100});
  world.serve("learner-1");
  EXPECT_THAT(world.run().scale({{"learners", 3}}, world.now()).error().message,
              HasSubstr("d4pg.batch 32 does not divide by 3 learners"));
  EXPECT_THAT(world.run().scale({{"learners", 5}}, world.now()).error().message,
              HasSubstr("learners.max = 4"));
  ASSERT_TRUE(world.run().drain("learner-0", world.now()));
  world.pass(milliseconds{100});
  EXPECT_THAT(drained(world), ElementsAre("learner-0"));
  world.run().learner_leads("learner-1");
  world.end("learner-0", "");
  world.pass(seconds{2});
  EXPECT_EQ(world.run().phase(), RunState::Phase::kRunning);
  EXPECT_THAT(names(world.run(), "learner"), ElementsAre("learner-1"));
}

TEST(RunStateScale, AResumedRunGoesOnWithTheScaledCounts) {
  World world(own_shards());
  world.serve_all();
  ASSERT_TRUE(world.run().scale({{"shards", 4}, {"actors", 3}}, world.now()));
  world.pass(milliseconds{100});
  for (std::uint32_t i = 0; i < 4; ++i) world.run().shard_reported(i, {10, 10, 0});
  ASSERT_TRUE(world.run().drain("shard-0", world.now()));
  world.pass(milliseconds{100});
  world.end("shard-0", "");
  World resumed(own_shards());
  resumed.begin(saved(world));
  EXPECT_THAT(names(resumed.run(), "shard"), ElementsAre("shard-1", "shard-2", "shard-3"));
  EXPECT_EQ(names(resumed.run(), "environment").size(), 3U);
  EXPECT_EQ(resumed.run().actor_steps(), 40U);
  EXPECT_EQ(resumed.run().counters().lost_with_shard, 0U);
  expect_balance(resumed.run().ledger(), 0);
  EXPECT_THAT(resumed.run().gone_shards(), ElementsAre(0U));
  EXPECT_FALSE(resumed.run().begins_empty("shard-3"));
}

TEST(RunStateScale, CountsThatWereConfiguredAnewWinOverScaledOnes) {
  World world(own_shards());
  world.serve_all();
  ASSERT_TRUE(world.run().scale({{"shards", 1}, {"actors", 1}}, world.now()));
  world.pass(milliseconds{100});
  world.end("shard-1", "");
  RunOptions changed = own_shards();
  changed.actors.count = 6;
  changed.replay.shards = 3;
  const RunCounters counters = saved(world);
  const RunState resumed(changed, plan_topology(changed, counters.scaled), counters, world.now());
  EXPECT_EQ(names(resumed, "environment").size(), 6U);
  EXPECT_THAT(names(resumed, "shard"), ElementsAre("shard-0", "shard-1", "shard-2"));
  EXPECT_TRUE(resumed.gone_shards().empty());
}

}  // namespace
}  // namespace troupe::actors
