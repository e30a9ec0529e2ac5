// The JSON of the telemetry protocol: everything survives the way there and back, and nothing
// malformed gets in.
#include "actors/telemetry/protocol.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

namespace troupe::actors::telemetry {
namespace {

using ::testing::HasSubstr;

Message envelope() {
  Message message;
  message.run = "run-1";
  message.node = "learner-0";
  message.session = 1760000000123456u;
  message.sequence = 17;
  message.time = 1760000042.5;
  message.actor_steps = 31200;
  message.learner_updates = 7100;
  return message;
}

TEST(Protocol, EnvelopeSurvivesTheWayThereAndBack) {
  Message message = envelope();
  message.payload = Metrics{{"loss", 0.25}};
  const auto back = decode(encode(message));
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(back->run, "run-1");
  EXPECT_EQ(back->node, "learner-0");
  EXPECT_EQ(back->session, 1760000000123456u);
  EXPECT_EQ(back->sequence, 17u);
  EXPECT_EQ(back->time, 1760000042.5);
  EXPECT_EQ(back->actor_steps, 31200);
  EXPECT_EQ(back->learner_updates, 7100);
  EXPECT_EQ(back->topic(), "metrics/learner-0");
  EXPECT_EQ(std::get<Metrics>(back->payload), (Metrics{{"loss", 0.25}}));
}

TEST(Protocol, NanAndInfinitiesAreRepresented) {
  const double infinity = std::numeric_limits<double>::infinity();
  Message message = envelope();
  message.payload = Metrics{{"a", std::nan("")}, {"b", infinity}, {"c", -infinity}};
  const std::string text = encode(message);
  EXPECT_THAT(text, HasSubstr(R"("a":"nan","b":"inf","c":"-inf")"));
  const auto back = decode(text);
  ASSERT_TRUE(back) << back.error().message;
  const auto& metrics = std::get<Metrics>(back->payload);
  EXPECT_TRUE(std::isnan(metrics.at("a")));
  EXPECT_EQ(metrics.at("b"), infinity);
  EXPECT_EQ(metrics.at("c"), -infinity);
}

TEST(Protocol, EventsEpisodesAndEvaluationsSurvive) {
  Message message = envelope();
  message.payload = Event{.severity = "warning", .text = "actor-1 was replaced: \"killed\"\n"};
  EXPECT_EQ(std::get<Event>(decode(encode(message))->payload).text,
            "actor-1 was replaced: \"killed\"\n");

  message.payload =
      Episode{.episode_return = 812.5, .length = 1000, .environment = 3, .policy_version = 99};
  const auto episode = std::get<Episode>(decode(encode(message))->payload);
  EXPECT_EQ(episode.episode_return, 812.5);
  EXPECT_EQ(episode.length, 1000);
  EXPECT_EQ(episode.environment, 3);
  EXPECT_EQ(episode.policy_version, 99u);

  message.payload = Evaluation{.returns = {1.5, std::nan("")}, .lengths = {10, 20}};
  const auto evaluation = std::get<Evaluation>(decode(encode(message))->payload);
  EXPECT_EQ(evaluation.returns[0], 1.5);
  EXPECT_TRUE(std::isnan(evaluation.returns[1]));
  EXPECT_EQ(evaluation.lengths, (std::vector<std::int64_t>{10, 20}));
}

TEST(Protocol, StatusSurvivesWithNodesAndWaits) {
  RunStatus status;
  status.state = "running";
  status.task = "dmc/cartpole_swingup";
  status.samples_per_insert = 63.5;
  status.losses = {{"loss/critic", 3.25}};
  status.counts = {{"restarts", 2}};
  status.waits = {{.role = "environment_actor", .on = "credit", .share = 0.4}};
  status.nodes = {{.node = "actor-0",
                   .role = "environment_actor",
                   .state = "running",
                   .pid = 42,
                   .rate = 512,
                   .waiting_on = "replay credit"}};
  Message message = envelope();
  message.payload = status;
  const auto back = decode(encode(message));
  ASSERT_TRUE(back) << back.error().message;
  const auto& read = std::get<RunStatus>(back->payload);
  EXPECT_EQ(read.state, "running");
  EXPECT_EQ(read.task, "dmc/cartpole_swingup");
  EXPECT_TRUE(std::isnan(read.eta));
  EXPECT_EQ(read.samples_per_insert, 63.5);
  EXPECT_EQ(read.losses, status.losses);
  EXPECT_EQ(read.counts, status.counts);
  ASSERT_EQ(read.waits.size(), 1u);
  EXPECT_EQ(read.waits[0].on, "credit");
  ASSERT_EQ(read.nodes.size(), 1u);
  EXPECT_EQ(read.nodes[0].pid, 42);
  EXPECT_EQ(read.nodes[0].rate, 512);
  EXPECT_EQ(read.nodes[0].waiting_on, "replay credit");
}

TEST(Protocol, InvalidUtf8DoesNotStopAMessage) {
  Message message = envelope();
  message.payload = Event{.text = "bad \xff byte"};
  const auto back = decode(encode(message));
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(std::get<Event>(back->payload).text, "bad \xef\xbf\xbd byte");
}

TEST(Protocol, UnknownKeysAreIgnoredAndANewerVersionIsRefused) {
  Message message = envelope();
  message.payload = Event{.text = "hello"};
  std::string text = encode(message);
  text.insert(1, R"("colour":"green",)");
  EXPECT_TRUE(decode(text));
  text.replace(text.find("\"v\":1"), 5, "\"v\":2");
  const auto newer = decode(text);
  ASSERT_FALSE(newer);
  EXPECT_EQ(newer.error().code, ErrorCode::kCorrupt);
  EXPECT_THAT(newer.error().message, HasSubstr("protocol version 2"));
}

TEST(Protocol, MalformedMessagesAreRefusedByField) {
  Message message = envelope();
  message.payload = Episode{.episode_return = 1, .length = 2};
  const std::string good = encode(message);
  const auto damaged = [&good](const std::string& from, const std::string& to) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    const auto result = decode(text);
    return result ? std::string("accepted: ") + text : result.error().message;
  };
  EXPECT_THAT(damaged("\"seq\":17", "\"seq\":-1"), HasSubstr("message.seq"));
  EXPECT_THAT(damaged("\"seq\":17", "\"seq\":1.5"), HasSubstr("message.seq"));
  EXPECT_THAT(damaged("\"length\":2", "\"length\":\"2\""), HasSubstr("payload.length"));
  EXPECT_THAT(damaged("\"length\":2", "\"long\":2"), HasSubstr("payload.length"));
  EXPECT_THAT(damaged("\"return\":1.0", "\"return\":null"), HasSubstr("payload.return"));
  EXPECT_THAT(damaged("\"kind\":\"episodes\"", "\"kind\":\"songs\""), HasSubstr("'songs'"));
  EXPECT_THAT(damaged("{", "["), HasSubstr("not JSON"));
  EXPECT_FALSE(decode(""));
  EXPECT_FALSE(decode("[]"));
  EXPECT_FALSE(decode(std::string(100000, '[')));
}

TEST(Protocol, TopicsNameTheirKind) {
  EXPECT_EQ(kind_of_topic("metrics/learner-0"), Kind::kMetrics);
  EXPECT_EQ(kind_of_topic("status/run"), Kind::kStatus);
  EXPECT_EQ(kind_of_topic("samples/gan"), std::nullopt);
  EXPECT_EQ(kind_of_topic(""), std::nullopt);
}

}  // namespace
}  // namespace troupe::actors::telemetry
