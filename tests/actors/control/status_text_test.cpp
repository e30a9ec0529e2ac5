// What a terminal shows of a run's status.
#include "actors/control/status_text.hpp"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

namespace troupe::actors {
namespace {

using testing::HasSubstr;
using Json = nlohmann::json;

Json status() {
  return {{"run", "first"},
          {"directory", "/runs/first"},
          {"pid", 77},
          {"state", "running"},
          {"reason", ""},
          {"wall_seconds", 62.0},
          {"actor_steps", 1234},
          {"version", 56},
          {"ledger",
           {{"inserted", 1234},
            {"prefilled", 0},
            {"held", 1000},
            {"removed", 200},
            {"lost_with_shard", 34}}},
          {"checkpoint", {{"newest", "step_000001000"}, {"error", "disk full"}}},
          {"counts",
           {{"actors", {{"ready", 1}, {"wanted", 2}, {"min", 1}, {"max", 64}}},
            {"learners", {{"ready", 1}, {"wanted", 1}}}}},
          {"nodes",
           {{{"name", "actor-0"},
             {"role", "environment"},
             {"host", "here"},
             {"state", "ready"},
             {"pid", 78},
             {"incarnation", 1},
             {"version", 50},
             {"lag", 6},
             {"waiting_on", "replay_credit"},
             {"restarts", {{"left", 10}, {"allowed", 10}}}},
            {{"name", "actor-1"},
             {"role", "environment"},
             {"host", "here"},
             {"state", "restarting"},
             {"pid", 0},
             {"incarnation", 3},
             {"restart_in_ms", 1500},
             {"restarts", {{"left", 7}, {"allowed", 10}}}}}}};
}

TEST(StatusText, ShowsTheRunItsLedgerItsCountsAndItsNodes) {
  const std::string text = status_text(status().dump());
  EXPECT_THAT(text, HasSubstr("first  running  pid 77  1234 steps, 56 updates in 1:02\n"));
  EXPECT_THAT(text, HasSubstr("1234 inserted + 0 prefilled = 1000 held + 200 removed + 34 lost"));
  EXPECT_THAT(text, HasSubstr("step_000001000; the last one was not written: disk full"));
  EXPECT_THAT(text, HasSubstr("actors 1/2 (1 to 64), learners 1/1\n"));
  EXPECT_THAT(text, testing::ContainsRegex("actor-0 +here +environment +ready +78 +1 +50 +6 +10 of "
                                           "10 +replay_credit\n"));
  EXPECT_THAT(text,
              testing::ContainsRegex("actor-1 .*restarting in 1.5.* s +0 +3 +- +- +7 of 10\n"));
}

TEST(StatusText, IsOneLineInAList) {
  EXPECT_EQ(status_line(status().dump()), "first  running  pid 77  1234 steps, 56 updates in 1:02");
}

TEST(StatusText, OfWhatIsNoStatusIsItself) {
  EXPECT_EQ(status_text("no such thing"), "no such thing");
  EXPECT_EQ(status_text("{}"), "{}");
}

}  // namespace
}  // namespace troupe::actors
