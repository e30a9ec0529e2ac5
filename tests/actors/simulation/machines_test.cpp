// The simulated clock, cores and links against what can be worked out by hand.
#include <gtest/gtest.h>

#include <vector>

#include "actors/simulation/engine.hpp"
#include "actors/simulation/host.hpp"
#include "actors/simulation/network.hpp"

namespace troupe::actors::simulation {
namespace {

TEST(SimulatedClock, ActionsHappenInTheOrderOfTimeAndThenOfAsking) {
  Engine engine;
  std::vector<int> done;
  engine.after(2, [&] { done.push_back(3); });
  engine.after(1, [&] {
    done.push_back(1);
    engine.after(0, [&] { done.push_back(2); });
  });
  engine.after(2, [&] { done.push_back(4); });
  engine.after(5, [&] { done.push_back(5); });
  engine.run_until(3);
  EXPECT_EQ(done, (std::vector{1, 2, 3, 4}));
  EXPECT_DOUBLE_EQ(engine.seconds(), 3);
  EXPECT_EQ(engine.events(), 4u);
}

// When a thread with `work` that begins at `begin` ends, each alone in its vector slot.
std::vector<double> ends(Engine& engine, Host& host,
                         const std::vector<std::pair<double, double>>& threads) {
  std::vector<double> ends(threads.size());
  for (std::size_t i = 0; i < threads.size(); ++i)
    engine.after(threads[i].first,
                 [&, i] { host.run(threads[i].second, [&, i] { ends[i] = engine.seconds(); }); });
  engine.run_until(100);
  return ends;
}

TEST(SimulatedHost, ThreadsShareACoreEvenly) {
  Engine engine;
  Host host(engine, 1, 1);
  // Alone until 1, then both at half speed: the second has its 1 s at 3, the first its 3 s at 4.
  const auto at = ends(engine, host, {{0, 3}, {1, 1}});
  EXPECT_NEAR(at[0], 4, 1e-6);
  EXPECT_NEAR(at[1], 3, 1e-6);
  EXPECT_NEAR(host.used(), 4, 1e-6);
}

TEST(SimulatedHost, CoresThatAreAllBusyAreAsSlowAsItIsTold) {
  Engine engine;
  Host host(engine, 2, 0.5);
  // Two at half speed until 2; the second then has 1 s left and is alone.
  const auto at = ends(engine, host, {{0, 1}, {0, 2}});
  EXPECT_NEAR(at[0], 2, 1e-6);
  EXPECT_NEAR(at[1], 3, 1e-6);
  EXPECT_NEAR(host.used(), 2 + 2 + 1, 1e-6);
}

TEST(SimulatedHost, TheBackgroundLeavesTheRest) {
  Engine engine;
  Host host(engine, 2, 1);
  host.add_background(1.5);
  EXPECT_NEAR(ends(engine, host, {{0, 1}})[0], 2, 1e-6);
  EXPECT_NEAR(host.used(), 100 * 1.5 + 1, 1e-6);
}

TEST(SimulatedNetwork, AHostSendsOneMessageAfterTheOther) {
  Engine engine;
  Network network(engine, 3, {0.25, 100}, {0, 1000});
  std::vector<double> at;
  const auto note = [&] { at.push_back(engine.seconds()); };
  network.send(0, 1, 100, note);  // 1 s on its way out, then the latency
  network.send(0, 2, 200, note);  // behind it
  network.send(0, 0, 500, note);  // within the host
  engine.run_until(10);
  ASSERT_EQ(at.size(), 3u);
  EXPECT_NEAR(at[0], 0.5, 1e-6);
  EXPECT_NEAR(at[1], 1.25, 1e-6);
  EXPECT_NEAR(at[2], 3.25, 1e-6);
  EXPECT_NEAR(network.busiest_out(), 3, 1e-9);
  EXPECT_NEAR(network.busiest_in(), 2, 1e-9);
}

TEST(SimulatedNetwork, AHostReceivesOneMessageAfterTheOther) {
  Engine engine;
  Network network(engine, 3, {0.5, 100}, {0, 1000});
  std::vector<double> at;
  for (const std::size_t from : {0, 1})
    network.send(from, 2, 100, [&] { at.push_back(engine.seconds()); });
  engine.run_until(10);
  EXPECT_NEAR(at[0], 1.5, 1e-6);
  EXPECT_NEAR(at[1], 2.5, 1e-6);
}

}  // namespace
}  // namespace troupe::actors::simulation
