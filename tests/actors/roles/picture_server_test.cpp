// Leases and pictures over a channel of one process, with messages that are lost, repeated or
// wrong.
#include "actors/roles/picture_server.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "replay/codec.hpp"
#include "tests/actors/roles/data_plane.hpp"

namespace troupe::actors {
namespace {

using namespace troupe::actors::testing;
using ::testing::HasSubstr;
using Words6 = std::array<std::uint64_t, 6>;
namespace data = learners::data;

class PictureServerTest : public ::testing::Test {
 protected:
  PictureServerTest() {
    server_ = PictureServer::open(signature_, unique_endpoint()).value();
    server_->set_feed(feed_);
    client_ = open_channel_client(server_->endpoint(), "data-0.1").value();
  }

  std::optional<ChannelMessage> ask(std::uint64_t serial) {
    return ask(serial, signature_.spec_hash);
  }
  std::optional<ChannelMessage> ask(std::uint64_t serial, std::uint64_t hash) {
    EXPECT_TRUE(
        client_->send(words_message<4>(DataKind::kWantLease, {kActor.index, 1, serial, hash})));
    return answer();
  }
  std::optional<ChannelMessage> answer() {
    server_->serve(milliseconds{20});
    return client_->receive(milliseconds{0});
  }
  std::optional<ChannelMessage> deliver(const Words6& words, std::int64_t label = 1) {
    const data::Lease lease{words[2], words[3], static_cast<std::int64_t>(words[4]),
                            static_cast<std::int64_t>(words[5])};
    data::Pictures pictures;
    for (std::int64_t p = lease.begin; p < lease.end; ++p) {
      pictures.positions.push_back(p);
      pictures.labels.push_back(label);
      pictures.pixels.insert(pictures.pixels.end(), 4, 9);
    }
    const replay::Chunk chunk = data::picture_chunk(lease, pictures, kActor, feed_->options());
    EXPECT_TRUE(client_->send({static_cast<std::uint8_t>(DataKind::kSegment),
                               std::make_shared<const Bytes>(replay::encode(chunk, signature_))}));
    return answer();
  }

  static constexpr data::DataActor kActor{0, 1};
  std::shared_ptr<data::PictureFeed> feed_ =
      std::make_shared<data::PictureFeed>(data::FeedOptions{.size = 8,
                                                            .batch = 4,
                                                            .ahead = 1,
                                                            .lease = 4,
                                                            .epochs = 0,
                                                            .side = 2,
                                                            .channels = 1,
                                                            .classes = 3,
                                                            .learner_epoch = 5,
                                                            .fingerprint = 1});
  replay::Signature signature_ = data::picture_signature(feed_->options());
  std::unique_ptr<PictureServer> server_;
  std::unique_ptr<ChannelClient> client_;
};

TEST_F(PictureServerTest, ALeaseIsGivenDeliveredAndAcknowledged) {
  const auto lease = words_of<6>(*ask(1));
  EXPECT_EQ(lease, (Words6{1, 5, 1, 0, 0, 4}));
  const auto acknowledged = deliver(*lease);
  ASSERT_TRUE(acknowledged);
  EXPECT_EQ(acknowledged->kind, static_cast<std::uint8_t>(DataKind::kAck));
  EXPECT_EQ(words_of<3>(*acknowledged), (std::array<std::uint64_t, 3>{0, 1, 1}));
  EXPECT_EQ(feed_->figures().ready, 1);
  EXPECT_TRUE(deliver(*lease));  // its acknowledgement was lost
  EXPECT_EQ(feed_->figures().ready, 1);
  EXPECT_EQ(feed_->figures().stale, 1U);
}

TEST_F(PictureServerTest, WhoAskedBeforeItsLearnerLedAgainGetsNoLeaseUnasked) {
  server_->set_feed(nullptr);
  EXPECT_FALSE(ask(1));  // and turned to the learner that led meanwhile
  server_->set_feed(feed_);
  EXPECT_FALSE(answer());
  EXPECT_EQ(words_of<6>(*ask(4)), (Words6{4, 5, 1, 0, 0, 4}));
}

TEST_F(PictureServerTest, ARepeatedRequestIsAnsweredTheSame) {
  const auto first = words_of<6>(*ask(1));
  EXPECT_EQ(words_of<6>(*ask(1)), first);
  EXPECT_NE(words_of<6>(*ask(2)), first);
}

TEST_F(PictureServerTest, AnEarlierIncarnationGivesWayAndIsNotHeardAgain) {
  const auto want = [&](ChannelClient& client, std::uint64_t incarnation) {
    EXPECT_TRUE(client.send(words_message<4>(
        DataKind::kWantLease, {kActor.index, incarnation, 1, signature_.spec_hash})));
    server_->serve(milliseconds{20});
    return client.receive(milliseconds{0});
  };
  ASSERT_TRUE(want(*client_, 1));
  const auto next = open_channel_client(server_->endpoint(), "data-0.2").value();
  const auto lease = want(*next, 2);
  ASSERT_TRUE(lease);
  EXPECT_EQ((*words_of<6>(*lease))[4], 0U);  // what the first one had is leased again
  EXPECT_FALSE(want(*client_, 1));
  EXPECT_EQ(words_of<6>(*want(*next, 2)), words_of<6>(*lease));
}

TEST_F(PictureServerTest, ARequestWaitsUntilThereIsRoom) {
  for (const std::uint64_t serial : {1U, 2U}) ASSERT_TRUE(deliver(*words_of<6>(*ask(serial))));
  EXPECT_FALSE(ask(3));
  ASSERT_NE(feed_->next(milliseconds{0}), nullptr);
  EXPECT_FALSE(answer());
  feed_->commit();
  const auto lease = answer();
  ASSERT_TRUE(lease);
  EXPECT_EQ((*words_of<6>(*lease))[3], 1U);  // of the next epoch
}

TEST_F(PictureServerTest, AnotherFeedTakesOverWhoAsksAndWhatIsLate) {
  const auto lease = *words_of<6>(*ask(1));
  server_->set_feed(nullptr);
  EXPECT_FALSE(ask(2));  // waits
  EXPECT_TRUE(deliver(lease));
  data::FeedOptions options = feed_->options();
  options.learner_epoch = 6;
  const auto next = std::make_shared<data::PictureFeed>(options);
  next->begin_at({1, 4, 0});
  server_->set_feed(next);
  EXPECT_FALSE(ask(1));  // was under way for long
  EXPECT_EQ(words_of<6>(*ask(2)), (Words6{2, 6, 1, 1, 4, 8}));
  EXPECT_TRUE(deliver(lease));  // of the feed before
  EXPECT_EQ(next->figures().stale, 1U);
}

TEST_F(PictureServerTest, AnActorThatSeesAnotherSetIsRefused) {
  const auto refused = ask(1, signature_.spec_hash + 1);
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->kind, static_cast<std::uint8_t>(DataKind::kRefused));
  EXPECT_THAT(std::string(refused->payload->begin() + 24, refused->payload->end()),
              HasSubstr("data set"));
}

TEST_F(PictureServerTest, BadMessagesAreCountedAndChangeNothing) {
  const auto lease = *words_of<6>(*ask(1));
  EXPECT_FALSE(client_->send(words_message<1>(DataKind::kWantLease, {1})) && answer());
  const auto junk = std::make_shared<const Bytes>(Bytes{1, 2, 3});
  EXPECT_FALSE(client_->send({static_cast<std::uint8_t>(DataKind::kSegment), junk}) && answer());
  const auto refused = deliver(lease, 3);
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->kind, static_cast<std::uint8_t>(DataKind::kRefused));
  EXPECT_EQ(server_->corrupt(), 3U);
  EXPECT_EQ(feed_->figures().ready, 0);
  EXPECT_TRUE(deliver(lease));
  EXPECT_EQ(feed_->figures().ready, 1);
}

}  // namespace
}  // namespace troupe::actors
