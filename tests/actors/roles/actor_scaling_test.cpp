// Actors come and go by who waits for whom, in a simulated run.
#include "actors/roles/actor_scaling.hpp"

#include <gmock/gmock.h>

#include <algorithm>

namespace troupe::actors {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// A run in which each actor could make `per_actor` steps a second, `cores` of them at full speed,
// and the learner takes `wanted`.
class Simulation {
 public:
  Simulation(ActorScalingOptions options, double per_actor, double wanted, double cores = 1000)
      : scaling_(options, now_), per_actor_(per_actor), wanted_(wanted), cores_(cores) {}

  void pass(seconds time) {
    for (seconds passed{0}; passed < time; passed += seconds{1}) {
      now_ += seconds{1};
      const auto count = static_cast<double>(load_.actors);
      const double could = per_actor_ * std::min(count, cores_);
      const double steps = std::min(could, wanted_);
      load_.steps += steps;
      load_.insert_blocked_ms += 1000 * count * (1 - steps / could);
      load_.sample_blocked_ms += 1000 * (1 - steps / wanted_);
      if (auto decision = scaling_.look(load_, now_)) {
        load_.actors = decision->actors;
        decisions_.push_back(std::move(*decision));
      }
    }
  }
  void want(double steps) { wanted_ = steps; }
  std::int64_t actors() const { return load_.actors; }
  const std::vector<ActorScaling::Decision>& decisions() const { return decisions_; }
  ActorLoad& load() { return load_; }

 private:
  ActorScaling::Time now_{seconds{1000}};
  ActorScaling scaling_;
  double per_actor_, wanted_, cores_;
  ActorLoad load_{.actors = 2};
  std::vector<ActorScaling::Decision> decisions_;
};

TEST(ActorScaling, GrowsUntilTheLearnerDoesNotWaitMuch) {
  Simulation run({}, 100, 1000);
  run.pass(seconds{600});
  EXPECT_GE(run.actors(), 7);
  EXPECT_LE(run.actors(), 10);
  EXPECT_THAT(run.decisions().front().why,
              testing::HasSubstr("actors waited to insert for 0 % of their time, the learner for "
                                 "samples for 80 %"));
  // And stays there.
  const std::size_t changes = run.decisions().size();
  run.pass(seconds{3600});
  EXPECT_EQ(run.decisions().size(), changes);
}

TEST(ActorScaling, ShrinksToWhatIsWantedAndNotBelowMin) {
  Simulation run({.min = 2}, 100, 5000);
  run.pass(seconds{1000});
  EXPECT_GT(run.actors(), 30);
  run.want(300);
  run.pass(seconds{3000});
  EXPECT_LE(run.actors(), 5);
  EXPECT_GE(run.actors(), 3);
  run.want(10);
  run.pass(seconds{3000});
  EXPECT_EQ(run.actors(), 2);
}

TEST(ActorScaling, KeepsToMax) {
  Simulation run({.max = 5}, 100, 100000);
  run.pass(seconds{1000});
  EXPECT_EQ(run.actors(), 5);
}

TEST(ActorScaling, TakesBackAGrowthThatBringsNothing) {
  Simulation run({}, 100, 1000, 2);  // two cores: more actors make no more steps
  run.pass(seconds{200});
  EXPECT_EQ(run.actors(), 2);
  ASSERT_EQ(run.decisions().size(), 2U);
  EXPECT_THAT(run.decisions()[1].why,
              testing::HasSubstr("3 actors make no more steps than 2 did (200/s after 200/s)"));
  run.pass(seconds{100});
  EXPECT_EQ(run.decisions().size(), 2U);  // it rests
  run.pass(seconds{400});
  EXPECT_GT(run.decisions().size(), 2U);  // and tries again
}

TEST(ActorScaling, DoesNotFollowAShortWish) {
  Simulation run({}, 100, 200);
  for (int i = 0; i < 100; ++i) {
    run.want(i % 2 == 0 ? 1000 : 200);  // never for as long as it must hold
    run.pass(seconds{5});
  }
  EXPECT_TRUE(run.decisions().empty());
}

TEST(ActorScaling, ACounterThatFallsIsNoLoad) {
  Simulation run({}, 100, 200);
  run.pass(seconds{30});
  for (int i = 0; i < 20; ++i) {
    run.load().sample_blocked_ms = 0;
    run.load().steps = 0;
    run.pass(seconds{5});
  }
  EXPECT_TRUE(run.decisions().empty());
}

}  // namespace
}  // namespace troupe::actors
