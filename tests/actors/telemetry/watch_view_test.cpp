// The screen of `troupe watch` as lines of text.
#include "actors/telemetry/watch_view.hpp"

#include <gmock/gmock.h>

namespace troupe::actors::telemetry {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Message message(std::int64_t steps, decltype(Message::payload) payload) {
  Message message;
  message.run = "cartpole-1";
  message.node = "node-x";
  message.actor_steps = steps;
  message.payload = std::move(payload);
  return message;
}

WatchModel busy_model() {
  WatchModel model;
  for (int i = 0; i < 10; ++i) {
    model.apply(
        message(i * 100, Evaluation{.returns = {i * 10.0, i * 10.0 + 2}, .lengths = {1, 1}}));
    model.apply(
        message(i * 100, Event{.severity = "warning", .text = "event " + std::to_string(i)}));
  }
  RunStatus status{.state = "running"};
  status.task = "dmc/cartpole_swingup";
  status.target_actor_steps = 2000;
  status.losses = {{"loss/critic", 3.25}};
  status.waits = {{.role = "learner", .on = "batches", .share = 0.2}};
  for (int i = 0; i < 12; ++i) {
    status.nodes.push_back({.node = "actor-" + std::to_string(i),
                            .role = "environment_actor",
                            .state = i == 3 ? "lost" : "running",
                            .pid = 1000 + i,
                            .rate = 512,
                            .waiting_on = "credit"});
  }
  model.apply(message(1000, status));
  return model;
}

std::string all_text(const std::vector<StyledLine>& lines);

TEST(Render, AClassifierShowsItsAccuracy) {
  WatchModel model = busy_model();
  model.apply(message(900, Metrics{{"top1", 0.9312}, {"top5", 0.998}, {"cross_entropy", 0.21}}));
  const std::string text = all_text(render(model, 120, 40, true));
  EXPECT_THAT(text, HasSubstr("accuracy: top-1 93.12 %"));
  EXPECT_THAT(text, HasSubstr("top-5 99.80 %"));
  EXPECT_THAT(text, HasSubstr("accuracy over updates"));
  EXPECT_THAT(text, Not(HasSubstr("return:")));
}

std::string all_text(const std::vector<StyledLine>& lines) {
  std::string text;
  for (const StyledLine& line : lines) text += line.text + "\n";
  return text;
}

TEST(WatchView, ShowsEverythingOnALargeScreen) {
  const std::string text = all_text(render(busy_model(), 200, 60, true));
  for (const char* part :
       {"cartpole-1", "dmc/cartpole_swingup", "running", "1.00k/2.00k (50 %)", "loss/critic 3.25",
        "learner on batches 20 %", "actor-0", "actor-11", "1003", "lost", "credit", "event 9",
        "return of evaluations", "\xe2\xa0"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
}

TEST(WatchView, FitsEverySize) {
  WatchModel model = busy_model();
  model.lost = 3;
  model.silent_for = 60;
  for (std::size_t columns = 0; columns <= 120; columns += 5) {
    for (std::size_t rows = 0; rows <= 60; ++rows) {
      const auto lines = render(model, columns, rows, true);
      ASSERT_LE(lines.size(), rows);
      for (const StyledLine& line : lines) ASSERT_LE(columns_of(line.text), columns);
    }
  }
}

TEST(WatchView, ASmallScreenSaysHowManyNodesAreHidden) {
  const std::string text = all_text(render(busy_model(), 80, 24, false));
  EXPECT_THAT(text, HasSubstr("more"));
  EXPECT_THAT(text, HasSubstr("cartpole-1"));
  EXPECT_THAT(text, Not(HasSubstr("\xe2")));
}

TEST(WatchView, LossAndSilenceAreNoticed) {
  WatchModel model = busy_model();
  EXPECT_THAT(all_text(render(model, 80, 40, false)), Not(HasSubstr("missed")));
  model.lost = 3;
  model.silent_for = 65;
  const std::string text = all_text(render(model, 80, 40, false));
  EXPECT_THAT(text, HasSubstr("missed here: 3"));
  EXPECT_THAT(text, HasSubstr("no message for 1:05"));
}

TEST(WatchView, ASnapshotReplacesWhatWasKnown) {
  WatchModel model = busy_model();
  Snapshot snapshot;
  snapshot.run = "cartpole-1";
  snapshot.events = {message(0, Event{.text = "only one"})};
  model.apply(snapshot);
  EXPECT_EQ(model.events.size(), 1u);
  EXPECT_TRUE(model.evaluations.empty());
  EXPECT_EQ(model.actor_steps, 1000);  // never falls
}

TEST(WatchView, TrainingEpisodesAreDrawnBeforeThereAreEvaluations) {
  WatchModel model;
  for (int i = 0; i < 5; ++i) model.apply(message(i, Episode{.episode_return = 1.0 * i}));
  EXPECT_THAT(all_text(render(model, 80, 40, true)), HasSubstr("return of training episodes"));
}

TEST(WatchView, HistoryIsBounded) {
  WatchModel model;
  for (int i = 0; i < 10000; ++i) {
    model.apply(message(i, Episode{}));
    model.apply(message(i, Event{}));
    model.apply(message(i, Evaluation{}));
  }
  EXPECT_LE(model.episodes.size() + model.events.size() + model.evaluations.size(), 6000u);
}

}  // namespace
}  // namespace troupe::actors::telemetry
