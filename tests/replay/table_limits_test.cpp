// What bounds a table: queues and stacks step by step, bytes, draws with a ratio.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "replay/limiter_check.hpp"
#include "replay/selector.hpp"
#include "tests/replay/support.hpp"

namespace troupe::replay {
namespace {

using namespace testing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Kind = InsertOutcome::Kind;
using namespace std::chrono_literals;

void expect_ledger(const Table& table) {
  const TableStatistics s = table.statistics();
  EXPECT_EQ(s.inserted_items, s.held_items + s.removed_items + s.lost_items);
  EXPECT_EQ(s.inserted_steps, s.held_steps + s.removed_steps + s.lost_steps);
  EXPECT_EQ(s.held_steps, s.held_items + s.pending_steps);
}

// An episode of `steps` items of one step; its number is in its observations.
ChunkPtr episode(std::uint32_t number, std::uint32_t steps = 1) {
  return make_chunk(
      {.sequence = number, .episode = number, .steps = steps, .end = EpisodeEnd::kTruncated});
}

std::vector<std::uint64_t> numbers(const Result<SampledItems>& sampled) {
  std::vector<std::uint64_t> result;
  if (sampled)
    for (const SampledItem& item : sampled->items) result.push_back(item.chunk->episode());
  return result;
}

TEST(QueueTable, GivesEachItemOnceInTheOrderItCame) {
  auto table = make_table(queue_options(small_options(), 3));
  EXPECT_EQ(table->try_sample(1).error().message,
            "sample waits for inserts: 1 items are wanted and the queue holds 0");
  for (std::uint32_t i = 0; i < 3; ++i)
    EXPECT_EQ(table->try_insert(episode(i)).kind, Kind::kAccepted);
  const auto full = table->try_insert(episode(3));
  EXPECT_EQ(full.kind, Kind::kWouldBlock);
  EXPECT_EQ(full.error.message,
            "insert waits for samples: 1 more items do not fit the queue, which holds 3 of 3");
  EXPECT_EQ(table->insert(episode(3), 1ns).kind, Kind::kWouldBlock);
  EXPECT_THAT(numbers(table->try_sample(2)), ElementsAre(0, 1));
  EXPECT_EQ(table->try_insert(episode(3)).kind, Kind::kAccepted);
  EXPECT_EQ(table->try_insert(episode(4)).kind, Kind::kAccepted);
  EXPECT_THAT(table->statistics().limiter, HasSubstr("queue 3/3; insert waits"));
  EXPECT_EQ(table->try_sample(4).error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(numbers(table->try_sample(3)), ElementsAre(2, 3, 4));
  EXPECT_EQ(table->sample(1, 1ns).error().code, ErrorCode::kTimeout);
  const auto s = table->statistics();
  EXPECT_EQ(s.removed_items, 5U);
  EXPECT_EQ(s.sampled_items, 5U);
  EXPECT_EQ(s.chunks, 0U);
  expect_ledger(*table);
}

TEST(QueueTable, RefusesAChunkThatNeverFits) {
  auto table = make_table(queue_options(small_options(), 3));
  const auto outcome = table->try_insert(episode(0, 4));
  EXPECT_EQ(outcome.kind, Kind::kRefused);
  EXPECT_THAT(outcome.error.message,
              HasSubstr("completes 4 items at once, more than the queue of 3 ever holds"));
  EXPECT_EQ(table->statistics().malformed_chunks, 1U);
  EXPECT_EQ(table->try_insert(episode(0, 3)).kind, Kind::kAccepted);
}

TEST(QueueTable, HandsEverythingFromOneThreadToAnother) {
  auto table = make_table(queue_options(small_options(), 8));
  constexpr std::uint32_t kItems = 3000;
  std::thread producer([&] {
    for (std::uint32_t i = 0; i < kItems; ++i)
      ASSERT_EQ(table->insert(episode(i), 1h).kind, Kind::kAccepted);
  });
  std::uint64_t next = 0;
  while (next < kItems) {
    const auto items = table->sample(2, 1h);
    for (const std::uint64_t number : numbers(items)) ASSERT_EQ(number, next++);
  }
  producer.join();
  EXPECT_EQ(table->statistics().held_items, 0U);
  expect_ledger(*table);
}

TEST(StackTable, GivesEachItemOnceTheNewestFirst) {
  auto table = make_table(stack_options(small_options(), 3));
  for (std::uint32_t i = 0; i < 3; ++i) table->try_insert(episode(i));
  EXPECT_EQ(table->try_insert(episode(3)).kind, Kind::kWouldBlock);
  EXPECT_THAT(numbers(table->try_sample(2)), ElementsAre(2, 1));
  table->try_insert(episode(3));
  EXPECT_THAT(numbers(table->try_sample(1)), ElementsAre(3));
  EXPECT_THAT(table->sample_block_reason(2), HasSubstr("the stack holds 1"));
  EXPECT_THAT(numbers(table->try_sample(1)), ElementsAre(0));
  expect_ledger(*table);
}

TEST(TableLimits, RefusesPartsThatContradictEachOther) {
  const auto refusal = [](TableOptions options, auto change) {
    change(options);
    const auto table = Table::create(options, small_signature());
    return table ? std::string() : table.error().message;
  };
  const TableOptions queue = queue_options(small_options(), 10);
  EXPECT_EQ(refusal(queue, [](auto&) {}), "");
  EXPECT_EQ(refusal(queue, [](auto& o) { o.selector = kUniform; }),
            "replay table: queue draws by selector 'fifo', not 'uniform'");
  EXPECT_THAT(refusal(queue, [](auto& o) { o.max_times_sampled = 0; }),
              HasSubstr("max_times_sampled is 0"));
  const TableOptions plain = small_options();
  EXPECT_THAT(refusal(plain, [](auto& o) { o.remover = "oldest"; }),
              HasSubstr("known are uniform, prioritised, fifo, lifo, max_heap, min_heap"));
  EXPECT_THAT(refusal(plain, [](auto& o) { o.max_times_sampled = -1; }),
              HasSubstr("max_times_sampled -1"));
  EXPECT_THAT(refusal(plain, [](auto& o) { o.priority_exponent = -1; }),
              HasSubstr("priority_exponent"));
  EXPECT_THAT(refusal(plain, [](auto& o) { o.importance_exponent = 2; }),
              HasSubstr("importance_exponent"));
  EXPECT_THAT(refusal(plain, [](auto& o) { o.capacity_bytes = -5; }), HasSubstr("-5"));
  // A step of two observation numbers, an action and a reward has 16 bytes.
  EXPECT_THAT(refusal(plain,
                      [](auto& o) {
                        o.limiter.min_size = 10;
                        o.capacity_bytes = 159;
                      }),
              HasSubstr("159 can never hold min_size 10 x 16 bytes"));
  EXPECT_THAT(refusal(plain,
                      [](auto& o) {
                        o.limiter = {.min_size = 5, .samples_per_insert = 3, .error_buffer = 10};
                        o.max_times_sampled = 2;
                      }),
              HasSubstr("samples_per_insert 3 exceeds max_times_sampled 2"));
}

TEST(TableLimits, NeverHoldsMoreBytesThanItMay) {
  for (const std::string_view remover : selector_names()) {
    TableOptions options = small_options(2);
    options.remover = remover;
    options.capacity_bytes = 1000;
    auto table = make_table(options);
    Random random(6);
    for (std::uint32_t i = 0; i < 500; ++i) {
      const auto steps = static_cast<std::uint32_t>(1 + random.below(12));
      ASSERT_EQ(table->try_insert(episode(i, steps)).kind, Kind::kAccepted);
      ASSERT_LE(table->statistics().bytes_held, 1000U);
      expect_ledger(*table);
    }
    EXPECT_GT(table->statistics().bytes_held, 700U) << remover;
  }
}

TEST(TableLimits, KeepsAsManyItemsAsBytesAllowWhenTheOldestLeave) {
  TableOptions options = small_options();
  options.capacity_bytes = 240;  // ten one-step episodes: two observations, action, reward = 24
  auto table = make_table(options);
  for (std::uint32_t i = 0; i < 50; ++i) {
    table->try_insert(episode(i));
    EXPECT_EQ(table->statistics().held_items, std::min(i + 1, 10U));
  }
  const auto items = table->try_sample(200);
  for (const std::uint64_t number : numbers(items)) EXPECT_GE(number, 40U);
}

TEST(TableLimits, RefusesAChunkOfMoreBytesThanTheTable) {
  TableOptions options = small_options();
  options.capacity_bytes = 100;
  auto table = make_table(options);
  table->try_insert(episode(0));
  const auto outcome = table->try_insert(episode(1, 6));  // 7 x 8 + 6 x 4 + 6 x 4
  EXPECT_EQ(outcome.kind, Kind::kRefused);
  EXPECT_THAT(outcome.error.message, HasSubstr("has 104 bytes, more than capacity_bytes 100"));
  EXPECT_EQ(table->statistics().held_items, 1U);
}

// Open windows cannot be removed: their steps were acknowledged. They alone may pass the bound.
TEST(TableLimits, KeepsOpenWindowsWhateverTheirBytes) {
  TableOptions options = small_options(5);
  options.capacity_bytes = 100;
  auto table = make_table(options);
  for (std::uint32_t worker = 0; worker < 10; ++worker)
    EXPECT_EQ(table->try_insert(make_chunk({.worker = worker, .steps = 2})).kind, Kind::kAccepted);
  EXPECT_EQ(table->statistics().pending_steps, 20U);
  EXPECT_EQ(table->statistics().bytes_held, 10 * 32U);
  for (std::uint32_t worker = 0; worker < 10; ++worker) table->abandon(worker);
  EXPECT_EQ(table->statistics().bytes_held, 0U);
  expect_ledger(*table);
}

// Items leave by their draws while a ratio is kept: neither side ever waits for the other.
TEST(TableLimits, KeepsTheRatioWhileItemsLeaveByTheirDraws) {
  struct Case {
    double spi;
    std::int64_t times;
  };
  for (const auto& [spi, times] : {Case{2, 2}, Case{2, 3}, Case{1, 8}, Case{0.5, 1}}) {
    const LimiterPlan plan{.capacity = 100,
                           .min_size = 20,
                           .samples_per_insert = spi,
                           .error_buffer = 25.0,
                           .batch = 8,
                           .prefetch = 1,
                           .max_times_sampled = times};
    const auto limits = check_limiter(plan);
    ASSERT_TRUE(limits) << limits.error().message;
    TableOptions options = small_options();
    options.capacity = limits->capacity;
    options.limiter = limits->limiter;
    options.max_times_sampled = times;
    auto table = make_table(options);
    Random random(11);
    std::uint32_t next = 0;
    for (int i = 0; i < 20000; ++i) {
      const auto steps = static_cast<std::uint32_t>(1 + random.below(limits->flush_steps));
      const auto inserted = [&] {
        if (table->try_insert(episode(next, steps)).kind != Kind::kAccepted) return false;
        ++next;
        return true;
      };
      const bool insert_first = random.below(2) == 0;
      if (insert_first && inserted()) continue;
      if (table->try_sample(8)) continue;
      ASSERT_TRUE(!insert_first && inserted()) << table->statistics().limiter;
    }
    EXPECT_NEAR(table->spi(), spi, 0.05 * spi);
    expect_ledger(*table);
  }
}

}  // namespace
}  // namespace troupe::replay
