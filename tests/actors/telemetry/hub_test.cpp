// The hub's arithmetic: totals over incarnations, rates, waits, ETA, and what rows hold.
#include "actors/telemetry/hub.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace troupe::actors::telemetry {
namespace {

NodeReport actor(const std::string& name, double steps, std::uint64_t incarnation = 1) {
  return {.node = name,
          .role = "environment_actor",
          .incarnation = incarnation,
          .counters = {{"actor_steps", steps}},
          .gauges = {},
          .waiting_on = {}};
}

NodeReport learner(double updates) {
  return {.node = "learner-0",
          .role = "learner",
          .incarnation = 1,
          .counters = {{"learner_updates", updates}},
          .gauges = {},
          .waiting_on = {}};
}

TEST(TelemetryHub, SumsStepsOverNodesAndIncarnationsOnTopOfTheRestored) {
  TelemetryHub hub({.restored_actor_steps = 5000}, 0);
  EXPECT_EQ(hub.actor_steps(), 5000);
  hub.report(actor("a", 100), 1);
  hub.report(actor("b", 40), 1);
  hub.report(actor("a", 150), 2);
  EXPECT_EQ(hub.actor_steps(), 5190);
  hub.report(actor("a", 30, 2), 3);  // a new process counts from 0
  EXPECT_EQ(hub.actor_steps(), 5220);
}

TEST(TelemetryHub, LateReportsOfTheDeadAreNotCountedTwice) {
  TelemetryHub hub({}, 0);
  hub.report(actor("a", 1000), 1);
  hub.remove_node("a");
  hub.report(actor("a", 1010), 2);  // was under way when the node was removed
  EXPECT_EQ(hub.actor_steps(), 1010);
  EXPECT_TRUE(hub.status(2).nodes.empty());
  hub.report(actor("a", 5, 2), 3);
  EXPECT_EQ(hub.status(3).nodes.size(), 1u);
  hub.report(actor("a", 1020), 4);  // the predecessor's, after its successor spoke
  EXPECT_EQ(hub.actor_steps(), 1015);
}

TEST(TelemetryHub, LearnerUpdatesAreAbsoluteAndMayFallWithARestoredLearner) {
  TelemetryHub hub({.restored_updates = 700}, 0);
  EXPECT_EQ(hub.learner_updates(), 700);
  hub.report(learner(800), 1);
  EXPECT_EQ(hub.learner_updates(), 800);
  NodeReport restarted = learner(750);
  restarted.incarnation = 2;
  hub.report(restarted, 2);
  EXPECT_EQ(hub.learner_updates(), 750);
}

TEST(TelemetryHub, ComputesRatesRatioAndEta) {
  TelemetryHub hub({.target_actor_steps = 10000, .samples_per_insert = 32}, 0);
  for (int t = 1; t <= 20; ++t) {
    hub.report(actor("a", 100 * t), t);
    hub.report(learner(10 * t), t);
    hub.report({.node = "shard-0",
                .role = "replay_shard",
                .incarnation = 1,
                .counters = {{"inserted", 80.0 * t}, {"sampled", 2560.0 * t}},
                .gauges = {},
                .waiting_on = {}},
               t);
  }
  const RunStatus status = hub.status(20);
  EXPECT_DOUBLE_EQ(status.steps_per_second, 100);
  EXPECT_DOUBLE_EQ(status.updates_per_second, 10);
  EXPECT_DOUBLE_EQ(status.samples_per_insert, 32);
  EXPECT_DOUBLE_EQ(status.samples_per_insert_configured, 32);
  EXPECT_DOUBLE_EQ(status.eta, 80);  // (10000 - 2000) / 100
  EXPECT_DOUBLE_EQ(status.elapsed, 20);
}

TEST(TelemetryHub, TheNearestStopConditionGivesTheEta) {
  TelemetryHub hub({.target_actor_steps = 10000, .target_elapsed = 50, .earlier_elapsed = 20}, 0);
  for (int t = 1; t <= 10; ++t) hub.report(actor("a", 100 * t), t);
  EXPECT_DOUBLE_EQ(hub.status(10).eta, 20);  // 50 - 20 - 10, not (10000 - 1000) / 100
  hub.set_state("finished", "all steps were made");
  EXPECT_DOUBLE_EQ(hub.status(10).eta, 0);
  EXPECT_TRUE(is_final(hub.status(10)));
}

TEST(TelemetryHub, WithoutStopConditionThereIsNoEta) {
  TelemetryHub hub({}, 0);
  hub.report(actor("a", 100), 1);
  EXPECT_TRUE(std::isnan(hub.status(1).eta));
}

TEST(TelemetryHub, PolicyLagIsReportedOrElseTheDifferenceOfVersions) {
  TelemetryHub hub({}, 0);
  hub.report(learner(100), 1);
  NodeReport a = actor("a", 1), b = actor("b", 1);
  a.gauges["policy_version"] = 90;
  b.gauges["policy_version"] = 80;
  hub.report(a, 1);
  hub.report(b, 1);
  EXPECT_DOUBLE_EQ(hub.status(1).policy_lag, 15);
  NodeReport shard{.node = "s",
                   .role = "replay_shard",
                   .incarnation = 1,
                   .counters = {},
                   .gauges = {{"policy_lag", 12}},
                   .waiting_on = {}};
  hub.report(shard, 1);
  EXPECT_DOUBLE_EQ(hub.status(1).policy_lag, 12);
}

TEST(TelemetryHub, NamesWhatEachRoleWaitsForMost) {
  TelemetryHub hub({}, 0);
  for (int t = 1; t <= 10; ++t) {
    NodeReport a = actor("a", t), b = actor("b", t), l = learner(t);
    a.counters["credit_blocked_ms"] = 600 * t;
    a.counters["parameters_wait_ms"] = 100 * t;
    b.counters["credit_blocked_ms"] = 200 * t;
    l.waiting_on = "batches";
    hub.report(a, t);
    hub.report(b, t);
    hub.report(l, t);
  }
  const auto waits = hub.status(10).waits;
  ASSERT_EQ(waits.size(), 2u);
  EXPECT_EQ(waits[0].role, "environment_actor");
  EXPECT_EQ(waits[0].on, "credit");
  EXPECT_DOUBLE_EQ(waits[0].share, 0.4);  // (0.6 + 0.2) / 2
  EXPECT_EQ(waits[1].role, "learner");
  EXPECT_EQ(waits[1].on, "batches");
}

TEST(TelemetryHub, RowsMergeNodesByRoleAndKeepNan) {
  TelemetryHub hub({}, 0);
  for (int t = 1; t <= 10; ++t) {
    NodeReport a = actor("a", 30 * t), b = actor("b", 10 * t), l = learner(t);
    a.counters["stepping_ms"] = 900 * t;
    b.counters["stepping_ms"] = 500 * t;
    a.gauges["noise"] = 0.25;
    b.gauges["noise"] = 0.75;
    l.gauges["loss"] = std::nan("");
    hub.report(a, t);
    hub.report(b, t);
    hub.report(l, t);
  }
  hub.add_episode({.episode_return = 10});
  hub.add_episode({.episode_return = 30});
  hub.add_evaluation({.returns = {1, 3}, .lengths = {5, 5}}, 200);
  hub.count("restarts");
  const MetricsRow row = hub.row(10, 1760000000);
  EXPECT_EQ(row.actor_steps, 400);
  EXPECT_EQ(row.learner_updates, 10);
  EXPECT_EQ(row.time, 1760000000);
  EXPECT_DOUBLE_EQ(row.values.at("environment_actor/actor_steps_per_second"), 40);
  EXPECT_DOUBLE_EQ(row.values.at("environment_actor/stepping_share"), 0.7);
  EXPECT_DOUBLE_EQ(row.values.at("environment_actor/noise"), 0.5);
  EXPECT_TRUE(std::isnan(row.values.at("learner/loss")));
  EXPECT_DOUBLE_EQ(row.values.at("episode_return"), 20);
  EXPECT_DOUBLE_EQ(row.values.at("evaluation_return"), 2);
  EXPECT_DOUBLE_EQ(row.values.at("count/restarts"), 1);
  EXPECT_TRUE(std::isnan(hub.status(10).losses.at("loss")));
}

TEST(TelemetryHub, NodesCarryTheCoordinatorsViewAndTheirOwn) {
  TelemetryHub hub({}, 0);
  hub.set_node({.node = "a",
                .role = "environment_actor",
                .state = "silent",
                .pid = 42,
                .rate = 0,
                .waiting_on = {}});
  NodeReport report = actor("a", 0);
  report.waiting_on = "replay credit";
  hub.report(report, 0);
  hub.report(actor("a", 50), 1);
  const auto nodes = hub.status(1).nodes;
  ASSERT_EQ(nodes.size(), 1u);
  EXPECT_EQ(nodes[0].state, "silent");
  EXPECT_EQ(nodes[0].pid, 42);
  EXPECT_DOUBLE_EQ(nodes[0].rate, 50);
  EXPECT_EQ(nodes[0].waiting_on, "");
}

}  // namespace
}  // namespace troupe::actors::telemetry
