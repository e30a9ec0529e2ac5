// What the coordinator does otherwise for a job on pictures: its clock is the update.
#include "tests/actors/roles/run_state_world.hpp"

namespace troupe::actors {
namespace {

RunOptions options() {
  RunOptions options;
  options.job = "resnet";
  options.evaluation.every = 10;
  options.checkpoint.every = Duration{1000};
  return options;
}

TEST(PictureRuns, ConsistOfALearnerDataActorsAndAnEvaluator) {
  std::vector<std::string> names;
  for (const NodePlan& plan : plan_topology(options())) names.push_back(plan.name);
  EXPECT_THAT(names, testing::ElementsAre("learner-0", "data-0", "data-1", "evaluator-0"));
}

TEST(PictureRuns, MayHaveSeveralLearnersAndHaveNoShards) {
  RunOptions several = options();
  several.learners.count = 2;
  std::vector<std::string> names;
  for (const NodePlan& plan : plan_topology(several)) names.push_back(plan.name);
  EXPECT_THAT(names,
              testing::ElementsAre("learner-0", "learner-1", "data-0", "data-1", "evaluator-0"));
}

TEST(PictureRuns, CountUpdatesWhereverActorStepsWouldBe) {
  World world(options());
  world.serve_all();
  world.report(0, 9);
  world.pass(milliseconds{200});
  EXPECT_EQ(world.count<BeginEvaluation>(), 0);
  world.report(0, 12);
  world.pass(milliseconds{200});
  ASSERT_EQ(world.count<BeginEvaluation>(), 1);
  EXPECT_EQ(world.all<BeginEvaluation>().front().actor_steps, 12U);
}

TEST(PictureRuns, DataActorsHaveNoPartInCheckpoints) {
  World world(options());
  world.serve_all();
  world.pass(milliseconds{1500});
  ASSERT_GE(world.count<BeginCheckpoint>(), 1);
  EXPECT_THAT(world.all<BeginCheckpoint>().front().participants, testing::ElementsAre("learner-0"));
}

TEST(PictureRuns, EndAtTheirAccuracy) {
  RunOptions wanted = options();
  wanted.stop.accuracy = 0.9;
  World world(wanted);
  world.serve_all();
  world.report(0, 12);
  world.pass(milliseconds{200});
  const auto id = world.all<BeginEvaluation>().front().id;
  world.run().evaluation_done(id, 0.91, "");
  EXPECT_EQ(world.run().stopping(), "stop.accuracy reached");
}

TEST(PictureRuns, CanBeScaledInDataActors) {
  World world(options());
  world.serve_all();
  EXPECT_TRUE(world.run().scale({{"actors", 4}}, world.now()));
  EXPECT_FALSE(world.run().scale({{"learners", 2}}, world.now()));
  EXPECT_FALSE(world.run().scale({{"shards", 2}}, world.now()));
  std::vector<std::string> started;
  world.pass(milliseconds{100});
  for (const StartNode& start : world.all<StartNode>()) started.push_back(start.node);
  EXPECT_THAT(started, testing::IsSupersetOf({"data-2", "data-3"}));
}

TEST(PictureRuns, ALostDataActorIsSpareAsLongAsAnotherIsLeft) {
  RunOptions wanted = options();
  wanted.supervision.restarts = 0;
  World world(wanted);
  world.serve_all();
  world.end("data-0", "died");
  EXPECT_EQ(world.run().stopping(), "");
  world.end("data-1", "died");
  EXPECT_NE(world.run().stopping(), "");
}

}  // namespace
}  // namespace troupe::actors
