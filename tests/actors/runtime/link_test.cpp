#include "actors/runtime/link.hpp"

#include <gtest/gtest.h>

namespace troupe::actors {
namespace {

using namespace std::chrono_literals;
using State = Link::State;
using Action = Link::Action;

class LinkTest : public testing::Test {
 protected:
  static LinkOptions exact() {
    LinkOptions options;
    options.jitter = 0;
    return options;
  }
  // From any waiting state to kRunning.
  void run(Link& link) {
    now_ = std::max(now_, link.next_attempt());
    ASSERT_EQ(link.tick(now_), Action::kProbe);
    ASSERT_TRUE(link.answered(link.attempt(), now_));
    ASSERT_EQ(link.tick(now_), Action::kConnect);
    ASSERT_TRUE(link.connected(link.attempt(), now_));
  }
  Link::Time now_{};
};

TEST_F(LinkTest, ProbesThenConnectsThenRuns) {
  Link link(exact(), Random(1), now_);
  EXPECT_EQ(link.tick(now_), Action::kProbe);
  EXPECT_EQ(link.state(), State::kProbing);
  EXPECT_EQ(link.tick(now_), Action::kNothing) << "each action is handed out once";
  EXPECT_TRUE(link.answered(link.attempt(), now_));
  EXPECT_EQ(link.tick(now_), Action::kConnect);
  EXPECT_EQ(link.tick(now_), Action::kNothing);
  EXPECT_TRUE(link.connected(link.attempt(), now_));
  EXPECT_EQ(link.state(), State::kRunning);
  EXPECT_EQ(link.tick(now_ + 24h), Action::kNothing);
}

TEST_F(LinkTest, DelaysDoubleWithEveryFailureUpToTheLongest) {
  Link link(exact(), Random(1), now_);
  for (const auto delay : {200ms, 400ms, 800ms, 1600ms, 3200ms, 5000ms, 5000ms}) {
    ASSERT_EQ(link.tick(now_), Action::kProbe);
    ASSERT_TRUE(link.failed(link.attempt(), "connection refused", now_));
    EXPECT_EQ(link.next_attempt(), now_ + delay);
    EXPECT_EQ(link.tick(now_ + delay - 1ms), Action::kNothing);
    now_ += delay;
  }
  EXPECT_EQ(link.failures(), 7);
  EXPECT_EQ(link.reason(), "connection refused");
}

TEST_F(LinkTest, JitterSpreadsTheDelaysOverTheirUpperHalf) {
  double least = 1, most = 0;
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    Link link({}, Random(seed), now_);
    link.tick(now_);
    link.failed(link.attempt(), "", now_);
    const std::chrono::duration<double> delay = link.next_attempt() - now_;
    least = std::min(least, delay.count());
    most = std::max(most, delay.count());
  }
  EXPECT_GE(least, 0.1);
  EXPECT_LE(most, 0.2);
  EXPECT_LT(least, 0.105);
  EXPECT_GT(most, 0.195);
}

TEST_F(LinkTest, ALostLinkStartsOverWithShortDelays) {
  Link link(exact(), Random(1), now_);
  for (int i = 0; i < 4; ++i) {
    now_ = link.next_attempt();
    link.tick(now_);
    link.failed(link.attempt(), "", now_);
  }
  run(link);
  EXPECT_EQ(link.failures(), 0);
  EXPECT_TRUE(link.lost(link.attempt(), "the peer went down", now_));
  EXPECT_EQ(link.state(), State::kBackingOff);
  EXPECT_EQ(link.next_attempt(), now_ + 200ms);
  EXPECT_EQ(link.losses(), 1u);
  run(link);
}

TEST_F(LinkTest, SilenceCountsAsFailureAndLateReportsAreIgnored) {
  Link link(exact(), Random(1), now_);
  link.tick(now_);
  const auto old_attempt = link.attempt();
  now_ += 8s;
  EXPECT_EQ(link.tick(now_), Action::kNothing);
  EXPECT_EQ(link.state(), State::kBackingOff);
  EXPECT_FALSE(link.answered(old_attempt, now_));
  now_ = link.next_attempt();
  ASSERT_EQ(link.tick(now_), Action::kProbe);
  EXPECT_FALSE(link.answered(old_attempt, now_));
  EXPECT_FALSE(link.failed(old_attempt, "late", now_));
  EXPECT_TRUE(link.answered(link.attempt(), now_));
  ASSERT_EQ(link.tick(now_), Action::kConnect);
  const auto slow_attempt = link.attempt();
  now_ += 10s;
  link.tick(now_);
  EXPECT_FALSE(link.connected(slow_attempt, now_)) << "the owner must drop this connection";
  EXPECT_EQ(link.state(), State::kBackingOff);
}

TEST_F(LinkTest, ADownMessageOfAnEarlierConnectionIsIgnored) {
  Link link(exact(), Random(1), now_);
  run(link);
  const auto first = link.attempt();
  link.lost(first, "", now_);
  run(link);
  EXPECT_FALSE(link.lost(first, "", now_));
  EXPECT_EQ(link.state(), State::kRunning);
}

TEST_F(LinkTest, GivesUpOnceTheGraceIsOver) {
  LinkOptions options = exact();
  options.grace = 60s;
  Link link(options, Random(1), now_);
  now_ += 3h;  // a link that runs uses up no grace
  Link running(options, Random(1), now_);
  run(running);
  EXPECT_EQ(running.tick(now_ + 3h), Action::kNothing);
  now_ += 3h;
  running.lost(running.attempt(), "", now_);
  EXPECT_EQ(running.tick(now_ + 59s), Action::kProbe);
  const auto attempt = running.attempt();
  EXPECT_EQ(running.tick(now_ + 60s), Action::kGiveUp);
  EXPECT_EQ(running.state(), State::kGivenUp);
  EXPECT_FALSE(running.answered(attempt, now_ + 60s));
  EXPECT_EQ(running.tick(now_ + 1h), Action::kNothing);
}

TEST_F(LinkTest, WithoutGraceItTriesForEver) {
  Link link(exact(), Random(1), now_);
  for (int i = 0; i < 1000; ++i) {
    now_ = std::max(now_ + 1h, link.next_attempt());
    ASSERT_EQ(link.tick(now_), Action::kProbe);
    link.failed(link.attempt(), "", now_);
  }
}

}  // namespace
}  // namespace troupe::actors
