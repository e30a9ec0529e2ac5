// Producers, consumers and onlookers on one table at once; made for ThreadSanitizer. Every loop is
// bounded by counts, and what must end is ended by the table itself.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "replay/checkpoint.hpp"
#include "tests/replay/support.hpp"

namespace troupe::replay {
namespace {

using namespace testing;
using Kind = InsertOutcome::Kind;
using namespace std::chrono_literals;

constexpr std::uint32_t kProducers = 3, kChunks = 300, kSteps = 4, kBatch = 32;

void produce(Table& table, std::uint32_t worker, std::atomic<std::uint64_t>& accepted) {
  for (std::uint32_t i = 0; i < kChunks; ++i) {
    const auto chunk =
        make_chunk({.worker = worker,
                    .sequence = i,
                    .episode = i / 4,
                    .first_step = i % 4 * kSteps,
                    .steps = kSteps,
                    .end = i % 4 == 3 ? EpisodeEnd::kTruncated : EpisodeEnd::kContinues});
    const auto outcome = table.insert(chunk, 1h);
    if (outcome.kind != Kind::kAccepted) return;
    accepted += kSteps;
    EXPECT_EQ(table.try_insert(chunk).kind, Kind::kDuplicate);
  }
}

void consume(Table& table, std::uint64_t& sampled) {
  Batch batch(table.batch_columns(), kBatch);
  for (;;) {
    const auto items = table.sample(kBatch, 1h);
    if (!items) return;
    sampled += kBatch;
    ASSERT_TRUE(table.gather(*items, batch));
    const auto now = batch.floats("observation"), next = batch.floats("next_observation");
    for (std::size_t i = 0; i < kBatch; ++i) {
      ASSERT_EQ(now[2 * i], next[2 * i]);
      ASSERT_LE(next[2 * i + 1] - now[2 * i + 1], 3);
    }
    table.update_priorities(batch.keys, std::vector<double>(kBatch, 1.0));
  }
}

TEST(TableConcurrency, KeepsRatioAndLedgerWithManyThreads) {
  TableOptions options = small_options(3);
  options.capacity = 500;
  options.limiter = {.min_size = 100, .samples_per_insert = 4, .error_buffer = 200};
  auto table = make_table(options);
  std::atomic<std::uint64_t> accepted{0};
  std::uint64_t sampled[2] = {0, 0};
  std::vector<std::thread> producers, consumers;
  for (std::uint32_t i = 0; i < kProducers; ++i)
    producers.emplace_back([&, i] { produce(*table, i, accepted); });
  for (auto& count : sampled) consumers.emplace_back([&] { consume(*table, count); });
  for (int i = 0; i < 20; ++i) {
    const auto s = table->statistics();
    EXPECT_EQ(s.inserted_items, s.held_items + s.removed_items);
    EXPECT_EQ(table->snapshot().cut.items.size() >= s.held_items, true);
  }
  for (auto& thread : producers) thread.join();
  table->close();
  for (auto& thread : consumers) thread.join();

  const auto s = table->statistics();
  EXPECT_EQ(accepted, std::uint64_t{kProducers} * kChunks * kSteps);
  EXPECT_EQ(s.inserted_steps, accepted);
  EXPECT_EQ(s.inserted_steps, s.held_steps + s.removed_steps);
  EXPECT_EQ(s.sampled_items, sampled[0] + sampled[1]);
  EXPECT_EQ(s.duplicate_chunks, std::uint64_t{kProducers} * kChunks);
  EXPECT_GE(s.cursor, options.limiter.min_diff());
  EXPECT_LE(s.cursor, options.limiter.max_diff());
}

TEST(TableConcurrency, ClosingWakesEveryoneWhoWaits) {
  TableOptions options = small_options(1);
  options.limiter = {.min_size = 4, .samples_per_insert = 1, .error_buffer = 1};
  auto table = make_table(options);
  std::atomic<int> started{0}, ended{0};
  std::vector<std::thread> threads;
  for (std::uint32_t i = 0; i < 2; ++i) {
    threads.emplace_back([&] {
      ++started;
      EXPECT_EQ(table->sample(1, 1h).error().code, ErrorCode::kUnavailable);
      ++ended;
    });
    threads.emplace_back([&, i] {
      // 20 items at once pass the band of 3..5 for ever.
      const auto chunk = make_chunk({.worker = i, .steps = 20, .end = EpisodeEnd::kTruncated});
      ++started;
      EXPECT_EQ(table->insert(chunk, 1h).error.code, ErrorCode::kUnavailable);
      ++ended;
    });
  }
  while (started < 4) std::this_thread::yield();
  table->close();
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(ended, 4);
}

TEST(TableConcurrency, RestoresUnderUse) {
  auto table = make_table(small_options(1));
  table->try_insert(make_chunk({.steps = 50, .end = EpisodeEnd::kTruncated}));
  const TableSnapshot snapshot = table->snapshot();
  std::thread consumer([&] {
    Batch batch(table->batch_columns(), 16);
    for (int i = 0; i < 200; ++i) {
      const auto items = table->try_sample(16);
      EXPECT_TRUE(items && table->gather(*items, batch));
    }
  });
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(table->adopt(snapshot));
  consumer.join();
  EXPECT_EQ(table->statistics().held_items, 50U);
}

}  // namespace
}  // namespace troupe::replay
