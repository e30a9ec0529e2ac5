// Batches come out in order and whole, each position once, whoever delivers and dies.
#include "learners/data/picture_feed.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>

#include "envs/spec/random.hpp"

namespace troupe::learners::data {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

FeedOptions options_of(std::int64_t size = 10, std::int64_t batch = 4) {
  return {.size = size,
          .batch = batch,
          .ahead = 2,
          .lease = 3,
          .epochs = 0,
          .side = 2,
          .channels = 1,
          .classes = 5,
          .learner_epoch = 7,
          .fingerprint = 99};
}

std::uint8_t pixel_of(std::uint64_t epoch, std::int64_t position) {
  return static_cast<std::uint8_t>(epoch * 31 + static_cast<std::uint64_t>(position) * 3 + 1);
}

// What a data actor makes of a lease; every position that `is_corrupt` names is left out.
template <class IsCorrupt>
replay::Chunk delivery(const Lease& lease, const DataActor& actor, const FeedOptions& options,
                       IsCorrupt is_corrupt) {
  Pictures pictures;
  pictures.epoch = lease.epoch;
  for (std::int64_t p = lease.begin; p < lease.end; ++p) {
    if (is_corrupt(p)) continue;
    pictures.positions.push_back(p);
    pictures.labels.push_back(p % options.classes);
    pictures.pixels.insert(pictures.pixels.end(), 4, pixel_of(lease.epoch, p));
  }
  return picture_chunk(lease, pictures, actor, options);
}

replay::Chunk delivery(const Lease& lease, const DataActor& actor, const FeedOptions& options) {
  return delivery(lease, actor, options, [](std::int64_t) { return false; });
}

const DataActor kOne{0, 1}, kTwo{1, 1};

TEST(PictureFeed, BatchesLeaveInOrderHoweverTheirPartsCome) {
  PictureFeed feed(options_of());
  const auto first = *feed.lease(kOne), rest = *feed.lease(kTwo), next = *feed.lease(kOne);
  EXPECT_EQ((std::pair{first.begin, first.end}), (std::pair<std::int64_t, std::int64_t>{0, 3}));
  EXPECT_EQ((std::pair{rest.begin, rest.end}), (std::pair<std::int64_t, std::int64_t>{3, 4}));
  EXPECT_EQ((std::pair{next.begin, next.end}), (std::pair<std::int64_t, std::int64_t>{4, 7}));
  ASSERT_TRUE(*feed.take(delivery(next, kOne, feed.options())));
  ASSERT_TRUE(*feed.take(delivery(rest, kTwo, feed.options())));
  EXPECT_EQ(feed.next(milliseconds{0}), nullptr);
  EXPECT_EQ(feed.waiting_on(), "pictures 0-3 of epoch 0, 3 of them missing");
  ASSERT_TRUE(*feed.take(delivery(first, kOne, feed.options())));
  const PictureBatch* batch = feed.next(milliseconds{0});
  ASSERT_NE(batch, nullptr);
  EXPECT_EQ(batch->begin, 0);
  EXPECT_EQ(batch->batch.items(), 4);
  for (std::int64_t p = 0; p < 4; ++p)
    EXPECT_EQ(batch->batch.bytes(0)[static_cast<std::size_t>(4 * p)], pixel_of(0, p)) << p;
}

TEST(PictureFeed, AnEpochEndsWithWhatIsLeftAndTheNextBegins) {
  PictureFeed feed(options_of());
  std::vector<std::pair<std::uint64_t, std::int64_t>> sizes;
  while (sizes.size() < 4) {
    while (const auto lease = feed.lease(kOne))
      ASSERT_TRUE(*feed.take(delivery(*lease, kOne, feed.options())));
    const PictureBatch* batch = feed.next(milliseconds{0});
    ASSERT_NE(batch, nullptr);
    sizes.emplace_back(batch->epoch, batch->batch.items());
    feed.commit();
  }
  EXPECT_EQ(sizes, (decltype(sizes){{0, 4}, {0, 4}, {0, 2}, {1, 4}}));
  EXPECT_EQ(feed.figures().epoch, 1U);
  EXPECT_EQ(feed.figures().committed, 4);
}

TEST(PictureFeed, LeasesGoOutForTheBatchesAheadOnly) {
  PictureFeed feed(options_of(100, 4));
  std::int64_t leased = 0;
  while (const auto lease = feed.lease(kOne)) {
    leased += lease->end - lease->begin;
    ASSERT_TRUE(*feed.take(delivery(*lease, kOne, feed.options())));
  }
  EXPECT_EQ(leased, 3 * 4);  // two ahead and one in use
  ASSERT_NE(feed.next(milliseconds{0}), nullptr);
  EXPECT_FALSE(feed.lease(kOne));
  feed.commit();
  EXPECT_TRUE(feed.lease(kOne));
}

TEST(PictureFeed, WhatAnEndedActorDeliveredStaysAndTheRestGoesToOthersFirst) {
  PictureFeed feed(options_of());
  const auto delivered = *feed.lease(kOne), lost = *feed.lease(kOne);
  ASSERT_TRUE(*feed.take(delivery(delivered, kOne, feed.options())));
  EXPECT_EQ(feed.end(kOne), lost.end - lost.begin);
  EXPECT_FALSE(feed.lease(kOne));                                       // it is over
  EXPECT_FALSE(*feed.take(delivery(lost, kOne, feed.options())));       // it comes too late
  EXPECT_FALSE(*feed.take(delivery(delivered, kOne, feed.options())));  // and twice
  const auto again = *feed.lease(kTwo);
  EXPECT_EQ((std::pair{again.begin, again.end}), (std::pair{lost.begin, lost.end}));
  ASSERT_TRUE(*feed.take(delivery(again, kTwo, feed.options())));
  ASSERT_NE(feed.next(milliseconds{0}), nullptr);
  feed.commit();
  EXPECT_EQ(feed.figures().committed, 4);
  EXPECT_EQ(feed.figures().released, 1U);
  EXPECT_EQ(feed.figures().stale, 2U);
}

TEST(PictureFeed, ALaterIncarnationEndsTheEarlierOne) {
  PictureFeed feed(options_of());
  const auto lost = *feed.lease({0, 1});
  const auto again = *feed.lease({0, 2});
  EXPECT_EQ(again.begin, lost.begin);
  EXPECT_FALSE(feed.lease({0, 1}));
}

TEST(PictureFeed, CorruptPicturesAreLeftOutAndCounted) {
  PictureFeed feed(options_of());
  const auto is_corrupt = [](std::int64_t p) { return p == 1 || (p >= 4 && p < 8); };
  while (const auto lease = feed.lease(kOne))
    ASSERT_TRUE(*feed.take(delivery(*lease, kOne, feed.options(), is_corrupt)));
  const PictureBatch* batch = feed.next(milliseconds{0});
  ASSERT_NE(batch, nullptr);
  ASSERT_EQ(batch->batch.items(), 3);
  EXPECT_EQ(batch->positions, 4);
  for (const auto& [row, position] : {std::pair{0, 0}, std::pair{1, 2}, std::pair{2, 3}})
    EXPECT_EQ(batch->batch.bytes(0)[static_cast<std::size_t>(4 * row)], pixel_of(0, position));
  feed.commit();
  batch = feed.next(milliseconds{0});  // nothing of the second batch is any good
  ASSERT_NE(batch, nullptr);
  EXPECT_EQ(batch->begin, 8);
  EXPECT_EQ(feed.figures().corrupt, 5U);
  EXPECT_EQ(feed.figures().committed, 8);
}

TEST(PictureFeed, DeliveriesThatContradictTheirLeaseAreRefused) {
  PictureFeed feed(options_of());
  const auto lease = *feed.lease(kOne);
  replay::Chunk chunk = delivery(lease, kOne, feed.options());
  chunk.step[1][0] = 5;  // of five classes
  EXPECT_THAT(feed.take(chunk).error().message, HasSubstr("label 5 is none of 5 classes"));
  chunk = delivery(lease, kOne, feed.options());
  chunk.step[2][8] = 9;
  EXPECT_THAT(feed.take(chunk).error().message, HasSubstr("position 9"));
  chunk = delivery({lease.id, lease.epoch, 0, 2}, kOne, feed.options());
  EXPECT_THAT(feed.take(chunk).error().message, HasSubstr("the lease was of 0-2"));
  chunk = delivery(lease, kOne, feed.options());
  chunk.header.learner_epoch = 6;  // of a learner that is no more
  EXPECT_FALSE(*feed.take(chunk));
  EXPECT_TRUE(*feed.take(delivery(lease, kOne, feed.options())));
}

TEST(PictureFeed, ARestoredFeedGoesOnWhereItsUpdatesWere) {
  PictureFeed feed(options_of());
  for (int batch = 0; batch < 2; ++batch) {
    while (const auto lease = feed.lease(kOne))
      ASSERT_TRUE(*feed.take(delivery(*lease, kOne, feed.options())));
    ASSERT_NE(feed.next(milliseconds{0}), nullptr);
    if (batch == 0) feed.commit();  // the second one is in an update that never was
  }
  const std::vector<std::uint8_t> saved = feed.save();
  PictureFeed restored(options_of());
  ASSERT_TRUE(restored.load(saved));
  EXPECT_EQ(restored.lease(kOne)->begin, 4);
  FeedOptions other = options_of();
  other.fingerprint = 1;
  EXPECT_THAT(PictureFeed(other).load(saved).error().message, HasSubstr("another one"));
  for (std::size_t size = 0; size < saved.size(); ++size)
    EXPECT_FALSE(PictureFeed(options_of()).load({saved.begin(), saved.begin() + size})) << size;
}

// Actors lease, deliver late or twice, die and come back at random, and the learner is set back to
// what it saved: every position of every epoch is in exactly one committed batch, in order.
// Another feed goes on where the batches say that the run is, as if it had been restored there.
TEST(PictureFeed, ABatchSaysWhereTheSetIsOnceItIsCommitted) {
  PictureFeed feed(options_of());
  const auto corrupt = [](std::int64_t p) { return p == 5; };
  for (const DataPlace& after : {DataPlace{0, 4, 0}, {0, 8, 1}, {1, 0, 1}, {1, 4, 1}}) {
    while (const auto lease = feed.lease(kOne))
      ASSERT_TRUE(*feed.take(delivery(*lease, kOne, feed.options(), corrupt)));
    const PictureBatch* batch = feed.next(milliseconds{0});
    ASSERT_NE(batch, nullptr);
    EXPECT_EQ(batch->after, after);
    feed.commit();
    EXPECT_EQ(feed.place(), after);
    PictureFeed other(options_of());
    other.begin_at(after);
    EXPECT_EQ(other.place(), after);
    PictureFeed restored(options_of());
    ASSERT_TRUE(restored.load(other.save()));
    EXPECT_EQ(restored.place(), after);
    const auto lease = *other.lease(kTwo);
    EXPECT_EQ((std::pair{lease.epoch, lease.begin}), (std::pair{after.epoch, after.committed}));
  }
}

TEST(PictureFeed, EveryPositionIsCommittedOnceWhateverHappens) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Random random(seed);
    FeedOptions options = options_of(23, 5);
    auto feed = std::make_unique<PictureFeed>(options);
    std::map<std::uint32_t, std::uint32_t> lives;
    std::deque<std::pair<Lease, DataActor>> out;
    std::vector<std::pair<std::uint64_t, std::int64_t>> committed;
    std::vector<std::uint8_t> saved = feed->save();
    std::size_t saved_count = 0;
    while (committed.size() < 3 * 23) {
      const auto index = static_cast<std::uint32_t>(random.below(3));
      const DataActor actor{index, lives[index] + 1};
      switch (random.below(8)) {
        case 0:
          feed->end(actor);
          ++lives[index];
          break;
        case 1:
        case 2:
        case 3:
          if (const auto lease = feed->lease(actor)) out.emplace_back(*lease, actor);
          break;
        case 4:
        case 5:
          if (!out.empty()) {
            const auto at = static_cast<std::ptrdiff_t>(random.below(out.size()));
            const auto [lease, who] = out[static_cast<std::size_t>(at)];
            ASSERT_TRUE(feed->take(delivery(lease, who, options)));
            if (random.below(4) > 0) out.erase(out.begin() + at);  // else it comes twice
          }
          break;
        case 6:
          if (const PictureBatch* batch = feed->next(milliseconds{0})) {
            if (random.below(5) == 0) break;  // the update failed: it comes again
            for (std::int64_t i = 0; i < batch->positions; ++i) {
              ASSERT_EQ(batch->batch.bytes(0)[static_cast<std::size_t>(4 * i)],
                        pixel_of(batch->epoch, batch->begin + i));
              committed.emplace_back(batch->epoch, batch->begin + i);
            }
            feed->commit();
          }
          break;
        default:
          if (random.below(10) > 0) break;
          if (random.below(2) == 0) {
            saved = feed->save();
            saved_count = committed.size();
          } else {
            ++options.learner_epoch;
            feed = std::make_unique<PictureFeed>(options);
            ASSERT_TRUE(feed->load(saved));
            committed.resize(saved_count);
          }
      }
    }
    for (std::size_t i = 0; i < committed.size(); ++i)
      ASSERT_EQ(committed[i], (std::pair<std::uint64_t, std::int64_t>{i / 23, i % 23})) << seed;
  }
}

}  // namespace
}  // namespace troupe::learners::data
