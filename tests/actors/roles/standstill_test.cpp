// Each cause of a standstill is named, once and not too often.
#include "actors/roles/standstill.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe::actors {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

StandstillView healthy() {
  return {.nodes = {{"learner-0", "learner", "ready", "", 0, ""},
                    {"shard-0", "shard", "ready", "", 0, ""},
                    {"shard-1", "shard", "ready", "", 0, ""},
                    {"actor-0", "environment", "ready", "", 0, ""},
                    {"actor-1", "environment", "ready", "", 0, ""}},
          .stopping = "",
          .version = 7,
          .actor_steps = 900,
          .restoring = "",
          .disk_error = ""};
}

TEST(Standstill, IsToldOncePerDoubledTimeAndItsEndToo) {
  const StandstillWatch::Time start{seconds{100}};
  StandstillWatch watch(seconds{10}, start);
  StandstillView view = healthy();
  EXPECT_FALSE(watch.look(view, start));
  EXPECT_FALSE(watch.look(view, start + milliseconds{9999}));
  EXPECT_THAT(watch.look(view, start + seconds{10}).value_or(""),
              AllOf(HasSubstr("no update for 10 s"), HasSubstr("version 7"), HasSubstr("900")));
  EXPECT_FALSE(watch.look(view, start + seconds{19}));
  EXPECT_TRUE(watch.look(view, start + seconds{20}));
  EXPECT_FALSE(watch.look(view, start + seconds{39}));
  ++view.version;
  EXPECT_EQ(watch.look(view, start + seconds{39}), "updates go on after 39 s");
  ++view.version;
  EXPECT_FALSE(watch.look(view, start + seconds{40}));
}

// Again and again, as one does that dies at its first update: the run stands still all the while.
TEST(Standstill, ALearnerThatGoesBackToItsCheckpointIsNoProgress) {
  const StandstillWatch::Time start{seconds{100}};
  StandstillWatch watch(seconds{10}, start);
  StandstillView view = healthy();
  EXPECT_FALSE(watch.look(view, start));
  view.version = 3;
  EXPECT_FALSE(watch.look(view, start + seconds{9}));
  EXPECT_THAT(watch.look(view, start + seconds{10}).value_or(""), HasSubstr("no update for 10 s"));
  ++view.version;  // what it makes from there on is
  EXPECT_EQ(watch.look(view, start + seconds{12}), "updates go on after 12 s");
}

TEST(Standstill, NamesStartUpWithItsFigures) {
  StandstillView view = healthy();
  view.nodes[0].waiting_on = "sample waits for min_size 40/100";
  EXPECT_THAT(explain_standstill(view),
              AllOf(HasSubstr("not reached replay.min_size"), HasSubstr("40/100"),
                    HasSubstr("actor-0, actor-1 wait on nothing")));
}

TEST(Standstill, NamesTheLimitersSideAndWhatTheOtherOneWaitsFor) {
  StandstillView view = healthy();
  view.nodes[0].waiting_on = "sample waits for inserts: cursor 70 - 16 samples would fall below 66";
  view.nodes[3].waiting_on = "parameters";
  view.nodes[4].waiting_on = "replay_credit";
  view.nodes[1].waiting_on = "insert waits for samples: 5 + 3 items would pass the 7 allowed";
  EXPECT_THAT(
      explain_standstill(view),
      AllOf(HasSubstr("holds samples back"), HasSubstr("cursor 70"),
            HasSubstr("actor-0 waits on parameters"), HasSubstr("actor-1 waits on replay_credit"),
            HasSubstr("shard-0 waits on insert waits for samples: 5 + 3")));
}

TEST(Standstill, NamesWhoIsStartingRestoringRestartingOrSilent) {
  StandstillView view = healthy();
  view.nodes[1].state = "restarting";
  EXPECT_THAT(explain_standstill(view), HasSubstr("shard-0 died and is about to be started again"));
  view.nodes[2].state = "silent";
  EXPECT_THAT(explain_standstill(view), HasSubstr("shard-1 does not answer"));
  view.nodes[0].state = "joined";
  view.restoring = "step_000012000";
  EXPECT_EQ(explain_standstill(view), "learner-0 is starting: it restores step_000012000");
  view.nodes[0].state = "starting";
  EXPECT_EQ(explain_standstill(view), "learner-0 is starting (starting)");
}

TEST(Standstill, NamesMissingEnvironmentActors) {
  StandstillView view = healthy();
  view.nodes[3].state = "ended";
  view.nodes[0].waiting_on = "sample waits for inserts: cursor 70";
  EXPECT_THAT(explain_standstill(view),
              AllOf(HasSubstr("holds samples back"), HasSubstr("actor-0 has ended")));
  view.nodes[4].state = "silent";
  EXPECT_THAT(explain_standstill(view), AllOf(HasSubstr("no environment actor serves"),
                                              HasSubstr("actor-1 does not answer")));
}

TEST(Standstill, NamesAShardThatABatchWaitsForAndALearnerInsideACall) {
  StandstillView view = healthy();
  view.nodes[0].waiting_on = "batch waits for its 12 items of shard 1";
  EXPECT_THAT(explain_standstill(view), HasSubstr("12 items of shard 1"));
  view.nodes[0].waiting_on = "";
  view.nodes[0].busy_ms = 12300;
  view.nodes[0].busy_with = "update 7";
  EXPECT_EQ(explain_standstill(view), "learner-0 has been inside update 7 for 12 s");
}

TEST(Standstill, NamesAFullDiskBesideTheCause) {
  StandstillView view = healthy();
  view.nodes[0].state = "restarting";
  view.disk_error = "learner-0: parameters.safetensors: No space left on device";
  EXPECT_THAT(explain_standstill(view),
              AllOf(HasSubstr("learner-0 died"), HasSubstr("No space left on device")));
}

TEST(Standstill, NamesTheShutdownAndWhoIsLeft) {
  StandstillView view = healthy();
  view.stopping = "stop.actor_steps reached";
  for (StandstillView::Node& node : view.nodes) node.state = "ended";
  view.nodes[3].state = "ready";
  EXPECT_THAT(explain_standstill(view),
              AllOf(HasSubstr("stopping (stop.actor_steps reached)"), HasSubstr("actor-0 (ready)"),
                    Not(HasSubstr("actor-1"))));
}

}  // namespace
}  // namespace troupe::actors
