// Every message survives CAF's binary format; what is not registered would arrive empty and
// unnoticed.
#include "actors/messages/messages.hpp"

#include <gtest/gtest.h>

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/binary_deserializer.hpp>
#include <caf/binary_serializer.hpp>
#include <caf/message.hpp>

namespace troupe::actors {
namespace {

class MessagesTest : public testing::Test {
 protected:
  MessagesTest() {
    config_.add_message_types<caf::id_block::troupe>();
    config_.set("scheduler.max-threads", std::size_t{1});
    system_ = std::make_unique<caf::actor_system>(config_);
  }

  // As the middleman does it: by type name, inside a message.
  template <class T>
  T round_trip(const T& value) {
    caf::binary_serializer::container_type bytes;
    caf::binary_serializer sink(*system_, bytes);
    caf::message out = caf::make_message(value);
    if (auto error = sink(out)) ADD_FAILURE() << system_->render(error);
    caf::message in;
    caf::binary_deserializer source(*system_, bytes);
    if (auto error = source(in)) ADD_FAILURE() << system_->render(error);
    if (!in.match_elements<T>()) {
      ADD_FAILURE() << "arrived as something else";
      return {};
    }
    return in.get_as<T>(0);
  }

  caf::actor_system_config config_;
  std::unique_ptr<caf::actor_system> system_;
};

TEST_F(MessagesTest, NodeMessagesKeepTheirFields) {
  const auto hello = round_trip(Hello{"actor-0", 3, 1, 1ULL << 60, 77});
  EXPECT_EQ(hello.node, "actor-0");
  EXPECT_EQ(hello.incarnation, 3U);
  EXPECT_EQ(hello.run_id, 1ULL << 60);
  EXPECT_EQ(hello.pid, 77);
  const auto ready = round_trip(RoleReady{"l", 1, 2, {"a", "b"}, {"c"}, "p", "u", "{}"});
  EXPECT_EQ(ready.first_shard, 2U);
  EXPECT_EQ(ready.data_endpoints, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(ready.sample_endpoints, std::vector<std::string>{"c"});
  EXPECT_EQ(ready.parameter_endpoint, "p");
  const auto control = round_trip(ControlRequest{"secret", "scale", "{}"});
  EXPECT_EQ(control.secret, "secret");
  EXPECT_EQ(control.verb, "scale");
  EXPECT_EQ(control.arguments, "{}");
  EXPECT_TRUE(round_trip(ControlAnswer{true, "text"}).done);
  EXPECT_EQ(round_trip(ControlAnswer{true, "text"}).text, "text");
  EXPECT_EQ(round_trip(Report{"n", 1, "{\"a\":1}"}).json, "{\"a\":1}");
  EXPECT_EQ(round_trip(Pong{"n", 1, 2, 3, "step"}).busy_with, "step");
  const auto part = round_trip(PartWritten{"n", 1, 5, {{"f", 10, 0xffffffffU}}, "{}", ""});
  ASSERT_EQ(part.files.size(), 1U);
  EXPECT_EQ(part.files[0].crc32c, 0xffffffffU);
  EXPECT_EQ(round_trip(EvaluationDone{"n", 1, 2, 3, "{}", "e"}).error, "e");
  EXPECT_EQ(round_trip(Event{"n", "warning", "kind", "text"}).text, "text");
  EXPECT_EQ(round_trip(RoleEnded{"n", 1, "why"}).error, "why");
  const auto wanted = round_trip(GroupWanted{"learner-1", 2, 3, "why"});
  EXPECT_EQ(wanted.generation, 3U);
  EXPECT_EQ(wanted.reason, "why");
  EXPECT_EQ(round_trip(RendezvousRequest{1, 3, {1, 2}}).bytes, (std::vector<std::uint8_t>{1, 2}));
  EXPECT_EQ(round_trip(NormaliserDelta{true, {1, 2}}).bytes, (std::vector<std::uint8_t>{1, 2}));
}

TEST_F(MessagesTest, ReturnsTravelAsBitsWhateverTheyAre) {
  for (const double value : {-0.0, 1e-310, HUGE_VAL, std::nan("")}) {
    const auto episode =
        round_trip(EpisodeDone{"n", 1, std::bit_cast<std::uint64_t>(value), 50, 9});
    EXPECT_EQ(episode.return_bits, std::bit_cast<std::uint64_t>(value));
  }
}

TEST_F(MessagesTest, CoordinatorMessagesKeepTheirFields) {
  const auto assignment =
      round_trip(Assignment{"learner", 1, 2, 3, "yaml", "/run", "/sockets", "/from"});
  EXPECT_EQ(assignment.role, "learner");
  EXPECT_EQ(assignment.epoch, 3U);
  EXPECT_EQ(assignment.restore_directory, "/from");
  const auto peers = round_trip(Peers{{"a"}, {"b"}, "c", {"u"}, "l", 4, {0, 7}, {1}, {2, 3}});
  EXPECT_EQ(peers.parameter_endpoint, "c");
  EXPECT_EQ(peers.ended_actors, (std::vector<std::uint32_t>{0, 7}));
  EXPECT_EQ(peers.leaving_shards, std::vector<std::uint32_t>{1});
  EXPECT_EQ(peers.gone_shards, (std::vector<std::uint32_t>{2, 3}));
  EXPECT_EQ(round_trip(Ping{7}).number, 7U);
  EXPECT_EQ(round_trip(CheckpointRequest{1, "d"}).directory, "d");
  EXPECT_EQ(round_trip(EvaluateRequest{1, 2, 3}).version, 3U);
  EXPECT_TRUE(round_trip(Pause{true}).paused);
  EXPECT_EQ(round_trip(Shutdown{"r"}).reason, "r");
  const auto group = round_trip(GroupFormed{5, 7, 1, 2});
  EXPECT_EQ(group.generation, 7U);
  EXPECT_EQ(group.rank, 1U);
  EXPECT_EQ(group.size, 2U);
  EXPECT_EQ(round_trip(RendezvousAnswer{{4, 5}}).bytes, (std::vector<std::uint8_t>{4, 5}));
  EXPECT_EQ(round_trip(Drain{"r"}).reason, "r");
  EXPECT_EQ(round_trip(NodeState{"n", "r", "s", 5, true}).pid, 5);
  EXPECT_EQ(round_trip(RunPhase{"finished", "r", 1, 2}).version, 2U);
}

}  // namespace
}  // namespace troupe::actors
