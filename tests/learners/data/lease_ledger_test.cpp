// Every position exactly once, whoever dies.
#include "learners/data/lease_ledger.hpp"

#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "envs/spec/random.hpp"

namespace troupe::learners::data {
namespace {

std::vector<Consumed> all_of(const Lease& lease) {
  std::vector<Consumed> consumed;
  for (std::int64_t p = lease.begin; p < lease.end; ++p) consumed.push_back({lease.id, p});
  return consumed;
}

TEST(LeaseLedger, AnEpochIsHandedOutOnceInOrder) {
  LeaseLedger ledger(10, 1);
  std::vector<std::pair<std::int64_t, std::int64_t>> ranges;
  while (const auto lease = ledger.lease(0, 4)) ranges.emplace_back(lease->begin, lease->end);
  EXPECT_EQ(ranges, (std::vector<std::pair<std::int64_t, std::int64_t>>{{0, 4}, {4, 8}, {8, 10}}));
  EXPECT_EQ(ledger.leased(), 10);
  EXPECT_FALSE(ledger.finished());
}

TEST(LeaseLedger, TheNextEpochBeginsBeforeTheLastOneIsCommitted) {
  LeaseLedger ledger(3, 2);
  const auto first = *ledger.lease(0, 8), second = *ledger.lease(0, 8);
  EXPECT_EQ(first.epoch, 0U);
  EXPECT_EQ(second.epoch, 1U);
  EXPECT_EQ(ledger.commit(all_of(second)), 3);
  EXPECT_EQ(ledger.epoch(), 0U);
  EXPECT_EQ(ledger.committed(1), 3);
  EXPECT_EQ(ledger.commit(all_of(first)), 3);
  EXPECT_EQ(ledger.epoch(), 2U);
  EXPECT_TRUE(ledger.finished());
  EXPECT_FALSE(ledger.lease(0, 1));
}

TEST(LeaseLedger, TheNextPlaceIsWhereTheNextLeaseBegins) {
  LeaseLedger ledger(10, 1);
  EXPECT_EQ(ledger.next(), (LeaseLedger::Place{0, 0}));
  ASSERT_TRUE(ledger.lease(1, 4));
  EXPECT_EQ(ledger.next(), (LeaseLedger::Place{0, 4}));
  ASSERT_TRUE(ledger.lease(2, 6));
  EXPECT_FALSE(ledger.next());
  ledger.release(1);
  EXPECT_EQ(ledger.next(), (LeaseLedger::Place{0, 0}));
  LeaseLedger endless(10, 0);
  ASSERT_TRUE(endless.lease(1, 10));
  EXPECT_EQ(endless.next(), (LeaseLedger::Place{1, 0}));
}

TEST(LeaseLedger, AHandedOverLeaseIsNotReleasedWithItsFirstWorker) {
  LeaseLedger ledger(10, 1);
  const auto lease = *ledger.lease(1, 4);
  EXPECT_EQ(ledger.find(lease.id, 1), lease);
  EXPECT_FALSE(ledger.find(lease.id, 2));
  EXPECT_TRUE(ledger.hand_over(lease.id, 9));
  EXPECT_FALSE(ledger.find(lease.id, 1));
  EXPECT_EQ(ledger.release(1), 0);
  EXPECT_EQ(ledger.commit(all_of(lease)), 4);
  EXPECT_FALSE(ledger.hand_over(lease.id, 1));
}

TEST(LeaseLedger, WhatADeadWorkerDidNotCommitGoesToAnother) {
  LeaseLedger ledger(10, 1);
  const auto dead = *ledger.lease(7, 6);
  EXPECT_EQ(ledger.commit(std::vector<Consumed>{{dead.id, 1}, {dead.id, 4}}), 2);
  EXPECT_EQ(ledger.release(7), 4);
  EXPECT_FALSE(ledger.current({dead.id, 0}));
  EXPECT_EQ(ledger.commit(all_of(dead)), 0);  // it comes too late
  EXPECT_EQ(ledger.ignored(), 6U);
  std::vector<std::int64_t> again;
  while (const auto lease = ledger.lease(8, 100))
    for (const Consumed& one : all_of(*lease)) {
      again.push_back(one.position);
      EXPECT_EQ(ledger.commit(std::vector<Consumed>{one}), 1);
    }
  EXPECT_EQ(again, (std::vector<std::int64_t>{0, 2, 3, 5, 6, 7, 8, 9}));
  EXPECT_TRUE(ledger.finished());
}

TEST(LeaseLedger, APositionCountsOnce) {
  LeaseLedger ledger(4, 1);
  const auto lease = *ledger.lease(0, 4);
  EXPECT_EQ(ledger.commit(std::vector<Consumed>{{lease.id, 2}, {lease.id, 2}, {lease.id, 9}}), 1);
  EXPECT_EQ(ledger.ignored(), 2U);
  EXPECT_EQ(ledger.committed(0), 1);
}

TEST(LeaseLedger, AResumedLedgerGivesOutTheRest) {
  LeaseLedger ledger(10, 3);
  const auto a = *ledger.lease(0, 5), b = *ledger.lease(1, 5), c = *ledger.lease(0, 4);
  ledger.commit(all_of(b));
  ledger.commit(std::vector<Consumed>{{a.id, 3}, {c.id, 0}});
  std::vector<std::uint8_t> bytes;
  replay::ByteWriter out(bytes);
  ledger.save(out);
  LeaseLedger resumed(10, 3);
  replay::ByteReader in(bytes);
  ASSERT_TRUE(resumed.load(in));
  EXPECT_EQ(resumed.committed(0), 6);
  EXPECT_EQ(resumed.committed(1), 1);
  EXPECT_EQ(ledger.leased(), 4 + 3);  // saving changed nothing
  std::vector<std::pair<std::uint64_t, std::int64_t>> left;
  while (const auto lease = resumed.lease(0, 3))
    for (std::int64_t p = lease->begin; p < lease->end; ++p) left.emplace_back(lease->epoch, p);
  std::vector<std::pair<std::uint64_t, std::int64_t>> expected{{0, 0}, {0, 1}, {0, 2}, {0, 4}};
  for (std::int64_t p = 1; p < 10; ++p) expected.emplace_back(1, p);
  for (std::int64_t p = 0; p < 10; ++p) expected.emplace_back(2, p);
  EXPECT_EQ(left, expected);
}

TEST(LeaseLedger, AResumeWithFewerEpochsThanAreDoneIsFinished) {
  LeaseLedger ledger(2, 3);
  for (int epoch = 0; epoch < 2; ++epoch) ledger.commit(all_of(*ledger.lease(0, 2)));
  std::vector<std::uint8_t> bytes;
  replay::ByteWriter out(bytes);
  ledger.save(out);
  LeaseLedger resumed(2, 1);
  replay::ByteReader in(bytes);
  ASSERT_TRUE(resumed.load(in));
  EXPECT_TRUE(resumed.finished());
  EXPECT_FALSE(resumed.lease(0, 1));
}

TEST(LeaseLedger, BytesOfAnotherLedgerAreRefused) {
  LeaseLedger ledger(10, 1);
  const auto lease = *ledger.lease(0, 5);
  ledger.commit(std::vector<Consumed>{{lease.id, 1}, {lease.id, 3}});
  std::vector<std::uint8_t> bytes;
  replay::ByteWriter out(bytes);
  ledger.save(out);
  LeaseLedger other(11, 1);
  replay::ByteReader whole(bytes);
  EXPECT_FALSE(other.load(whole));
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    LeaseLedger same(10, 1);
    replay::ByteReader part{std::span<const std::uint8_t>(bytes).first(size)};
    EXPECT_FALSE(same.load(part)) << size;
    EXPECT_EQ(same.committed(0), 0);
  }
}

// Workers lease, deliver late, die and come back; the learner commits in any order and is rolled
// back to its last save now and then: each position of each epoch is consumed once.
TEST(LeaseLedger, RandomHistoriesConsumeEveryPositionOnce) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    Random random(seed);
    const std::int64_t size = 1 + static_cast<std::int64_t>(random.below(50));
    constexpr std::uint64_t kEpochs = 4;
    LeaseLedger ledger(size, kEpochs);
    std::map<std::pair<std::uint64_t, std::int64_t>, int> consumed, saved_consumed;
    std::vector<std::uint8_t> saved;
    replay::ByteWriter first(saved);
    ledger.save(first);
    std::vector<std::pair<Lease, std::int64_t>> delivered;  // not yet committed, or too late
    int guard = 0;
    while (!ledger.finished()) {
      ASSERT_LT(++guard, 100000) << seed;
      const std::uint64_t what = random.below(20);
      if (what < 8) {
        if (const auto lease = ledger.lease(static_cast<std::uint32_t>(random.below(3)),
                                            1 + static_cast<std::int64_t>(random.below(7))))
          for (std::int64_t p = lease->begin; p < lease->end; ++p)
            delivered.emplace_back(*lease, p);
      } else if (what < 16 && !delivered.empty()) {
        const std::size_t at = random.below(delivered.size());
        const auto [lease, position] = delivered[at];
        delivered.erase(delivered.begin() + static_cast<std::ptrdiff_t>(at));
        const Consumed one{lease.id, position};
        const bool counts = ledger.current(one);
        ASSERT_EQ(ledger.commit(std::vector<Consumed>{one}), counts ? 1 : 0);
        if (counts) ++consumed[{lease.epoch, position}];
      } else if (what < 18) {
        ledger.release(static_cast<std::uint32_t>(random.below(3)));
      } else if (what == 18) {
        saved.clear();
        replay::ByteWriter out(saved);
        ledger.save(out);
        saved_consumed = consumed;
      } else if (random.below(4) == 0) {
        replay::ByteReader in(saved);
        ASSERT_TRUE(ledger.load(in));
        consumed = saved_consumed;                      // the model is as it was then, too
        if (delivered.size() > 3) delivered.resize(3);  // a few come late
      }
    }
    ASSERT_EQ(consumed.size(), static_cast<std::size_t>(size) * kEpochs);
    for (const auto& [position, times] : consumed) ASSERT_EQ(times, 1);
  }
}

}  // namespace
}  // namespace troupe::learners::data
