// The table as its users see it: what goes in comes out right, and the ledger holds at every
// moment.
#include "replay/table.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "envs/spec/random.hpp"

#include "tests/replay/support.hpp"

namespace troupe::replay {
namespace {

using namespace testing;
using Kind = InsertOutcome::Kind;
using namespace std::chrono_literals;

void expect_ledger(const Table& table) {
  const TableStatistics s = table.statistics();
  EXPECT_EQ(s.inserted_steps, s.held_steps + s.removed_steps + s.lost_steps);
  EXPECT_EQ(s.inserted_items, s.held_items + s.removed_items + s.lost_items);
  EXPECT_EQ(s.held_steps, s.held_items + s.pending_steps);
}

// Inserts one whole episode of T steps, `flush` steps a chunk.
void insert_episode(Table& table, std::uint64_t episode, std::uint32_t steps, EpisodeEnd end,
                    std::uint32_t flush, std::uint64_t& sequence) {
  for (std::uint32_t first = 0; first < steps; first += flush) {
    const std::uint32_t count = std::min(flush, steps - first);
    ChunkHeader header{
        .sequence = sequence++, .episode = episode, .first_step = first, .steps = count};
    header.end = first + count == steps ? end : EpisodeEnd::kContinues;
    ASSERT_EQ(table.try_insert(make_chunk(header)).kind, Kind::kAccepted);
  }
}

// Each stored item once, by (episode, step), through repeated sampling.
struct Row {
  float reward, discount, next_episode, next_step, action;
};
std::map<std::pair<int, int>, Row> content(Table& table) {
  std::map<std::pair<int, int>, Row> rows;
  const auto held = table.statistics().held_items;
  for (int round = 0; round < 4000 && rows.size() < held; ++round) {
    const Batch batch = take_batch(table, 16);
    const auto observation = batch.floats("observation"), next = batch.floats("next_observation");
    for (std::size_t i = 0; i < 16; ++i)
      rows[{static_cast<int>(observation[2 * i]), static_cast<int>(observation[2 * i + 1])}] = {
          batch.floats("reward")[i], batch.floats("discount")[i], next[2 * i], next[2 * i + 1],
          batch.floats("action")[i]};
  }
  EXPECT_EQ(rows.size(), held);
  return rows;
}

TEST(Table, ConstantRewardGivesTheGeometricSumForEveryStoredReturn) {
  for (const EpisodeEnd end : {EpisodeEnd::kTruncated, EpisodeEnd::kTerminated})
    for (const std::uint32_t flush : {1U, 3U, 7U, 50U}) {
      auto table = make_table(small_options(5, 0.99));
      std::uint64_t sequence = 0;
      for (std::uint64_t episode = 0; episode < 3; ++episode)
        insert_episode(*table, episode, 50, end, flush, sequence);
      const auto rows = content(*table);
      ASSERT_EQ(rows.size(), 150U);  // T items per episode, neither more nor fewer
      for (const auto& [key, row] : rows) {
        const int k = std::min(5, 50 - key.second);
        EXPECT_FLOAT_EQ(row.reward, static_cast<float>((1 - std::pow(0.99, k)) / (1 - 0.99)));
        const bool terminal = end == EpisodeEnd::kTerminated && key.second + k == 50;
        EXPECT_FLOAT_EQ(row.discount, terminal ? 0.0F : static_cast<float>(std::pow(0.99, k)));
        EXPECT_EQ(row.next_episode, key.first);
        EXPECT_EQ(row.next_step, key.second + k);
        EXPECT_EQ(row.action, 100 * key.first + key.second);
      }
      expect_ledger(*table);
    }
}

TEST(Table, StoresTheFinalObservationAndNeverTheNextEpisodesFirst) {
  // Observations carry (episode, step): s' of the last item is (episode, T), not (episode + 1, 0).
  auto table = make_table(small_options(3, 0.9));
  std::uint64_t sequence = 0;
  for (std::uint64_t episode = 0; episode < 5; ++episode)
    insert_episode(*table, episode, 4, EpisodeEnd::kTruncated, 2, sequence);
  const auto rows = content(*table);
  ASSERT_EQ(rows.size(), 20U);
  for (const auto& [key, row] : rows) {
    EXPECT_EQ(row.next_episode, key.first);
    EXPECT_EQ(row.next_step, std::min(key.second + 3, 4));
    EXPECT_GT(row.discount, 0);
  }
}

TEST(Table, GathersPixelsDiscreteActionsVersionsAndKeys) {
  const Signature signature{
      .observation = {{"observation", DType::kF32, {1}}, {"pixels", DType::kU8, {2, 3}}},
      .step = {{"action", DType::kI32, {}}},
      .spec_hash = 5};
  TableOptions options = small_options(1);
  options.shard = 4;
  options.shard_epoch = 9;
  auto table = Table::create(options, signature).value();
  auto chunk = std::make_shared<Chunk>();
  chunk->header = {
      .steps = 1, .end = EpisodeEnd::kTruncated, .parameter_version = 12, .spec_hash = 5};
  chunk->observation = {bytes_of({1, 2}), {1, 2, 3, 4, 5, 6, 11, 12, 13, 14, 15, 16}};
  chunk->step = {{7, 0, 0, 0}};
  chunk->reward = {3};
  ASSERT_EQ(table->try_insert(chunk).kind, Kind::kAccepted);
  Batch batch = take_batch(*table, 2);
  std::vector<std::string> names;
  for (const Column& column : batch.columns()) names.push_back(column.name);
  EXPECT_EQ(names,
            (std::vector<std::string>{"observation", "pixels", "action", "reward", "discount",
                                      "next_observation", "next_pixels", "weight"}));
  EXPECT_EQ(batch.floats("next_observation")[1], 2);
  EXPECT_EQ(batch.bytes(batch.find("pixels"))[6 + 5], 6);
  EXPECT_EQ(batch.bytes(batch.find("next_pixels"))[6 + 5], 16);
  EXPECT_EQ(batch.bytes(batch.find("action"))[4], 7);
  EXPECT_EQ(batch.floats("weight")[0], 1);
  EXPECT_EQ(batch.versions[1], 12U);
  EXPECT_EQ(batch.keys[1], (ItemKey{4, 9, 0, 1}));
  EXPECT_EQ(batch.find("nothing"), -1);
  EXPECT_TRUE(batch.floats("nothing").empty());

  const auto items = table->try_sample(3).value();
  EXPECT_EQ(table->gather(items, batch).error().code, ErrorCode::kInvalidArgument);
  Batch other({{"observation", DType::kF32, {1}}}, 3);
  EXPECT_EQ(table->gather(items, other).error().code, ErrorCode::kInvalidArgument);
}

TEST(Table, AnswersAResentChunkAsDuplicateAndChangesNothing) {
  auto table = make_table(small_options());
  const auto chunk = make_chunk({.sequence = 0, .steps = 3, .end = EpisodeEnd::kTruncated});
  EXPECT_EQ(table->try_insert(chunk).items, 3U);
  const auto before = table->statistics();
  EXPECT_EQ(table->try_insert(chunk).kind, Kind::kDuplicate);
  const auto after = table->statistics();
  EXPECT_EQ(after.inserted_steps, before.inserted_steps);
  EXPECT_EQ(after.held_items, 3U);
  EXPECT_EQ(after.duplicate_chunks, 1U);
}

TEST(Table, RefusesWhatIsNotFiniteOrDoesNotFitAndCountsIt) {
  auto table = make_table(small_options());
  auto bad = make_chunk({.sequence = 0, .steps = 3});
  bad->reward[1] = std::numeric_limits<float>::quiet_NaN();
  auto outcome = table->try_insert(bad);
  EXPECT_EQ(outcome.kind, Kind::kRefused);
  EXPECT_EQ(outcome.error.code, ErrorCode::kNotFinite);
  auto misfit = make_chunk({.sequence = 0, .steps = 3});
  misfit->observation[0].pop_back();
  EXPECT_EQ(table->try_insert(misfit).error.code, ErrorCode::kInvalidArgument);
  const auto s = table->statistics();
  EXPECT_EQ(s.not_finite_chunks, 1U);
  EXPECT_EQ(s.malformed_chunks, 1U);
  EXPECT_EQ(s.inserted_steps, 0U);
  // The sequence is not used up: the sender may send a good chunk under it.
  EXPECT_EQ(table->try_insert(make_chunk({.sequence = 0, .steps = 3})).kind, Kind::kAccepted);
}

TEST(Table, RefusesChunksOfADeadIncarnation) {
  auto table = make_table(small_options());
  table->try_insert(make_chunk({.incarnation = 2, .steps = 1}));
  EXPECT_EQ(table->try_insert(make_chunk({.incarnation = 1, .steps = 1})).kind, Kind::kRefused);
  EXPECT_EQ(table->statistics().stale_chunks, 1U);
}

TEST(Table, RemovesItsOldestItemsAtCapacityAndFreesTheirChunks) {
  TableOptions options = small_options(2);
  options.capacity = 10;
  auto table = make_table(options);
  // That they are freed, memory_test.cpp counts.
  for (std::uint32_t i = 0; i < 20; ++i)
    table->try_insert(make_chunk({.sequence = i, .first_step = 2 * i, .steps = 2}));
  // 40 steps: items 0..37 were built, 28..37 are held; 38 and 39 wait.
  const auto rows = content(*table);
  ASSERT_EQ(rows.size(), 10U);
  EXPECT_EQ(rows.begin()->first.second, 28);
  const auto s = table->statistics();
  EXPECT_EQ(s.removed_items, 28U);
  EXPECT_EQ(s.pending_steps, 2U);
  EXPECT_EQ(s.chunks, 6U);  // steps 28 to 39
  EXPECT_EQ(s.bytes_held, 6U * 2 * (2 + 1 + 1) * sizeof(float));
  expect_ledger(*table);
}

TEST(Table, KeepsSampledItemsValidAfterTheyWereRemoved) {
  TableOptions options = small_options(1);
  options.capacity = 2;
  auto table = make_table(options);
  table->try_insert(
      make_chunk({.sequence = 0, .episode = 1, .steps = 2, .end = EpisodeEnd::kTruncated}));
  const auto items = table->try_sample(8).value();
  table->try_insert(
      make_chunk({.sequence = 1, .episode = 2, .steps = 2, .end = EpisodeEnd::kTruncated}));
  Batch batch(table->batch_columns(), 8);
  ASSERT_TRUE(table->gather(items, batch));
  for (int i = 0; i < 8; ++i)
    EXPECT_EQ(batch.floats("observation")[static_cast<std::size_t>(2 * i)], 1);
  // Their slots hold other items now: priorities come too late.
  EXPECT_EQ(table->update_priorities(batch.keys, std::vector<double>(8, 1.0)), 0U);
  EXPECT_EQ(table->statistics().stale_priorities, 8U);
  const Batch fresh = take_batch(*table, 4);
  EXPECT_EQ(table->update_priorities(fresh.keys, std::vector<double>(4, 1.0)), 4U);
}

TEST(Table, BlocksBothSidesAsTheLimiterSaysAndExplains) {
  TableOptions options = small_options(1);
  options.limiter = {.min_size = 4, .samples_per_insert = 2, .error_buffer = 4};  // band [4, 12]
  auto table = make_table(options);
  EXPECT_EQ(table->try_sample(1).error().message, "sample waits for min_size 0/4");
  const auto one = [&](std::uint64_t s) {
    return make_chunk({.sequence = s, .episode = s, .steps = 1, .end = EpisodeEnd::kTruncated});
  };
  for (std::uint64_t s = 0; s < 6; ++s) EXPECT_EQ(table->try_insert(one(s)).kind, Kind::kAccepted);
  const auto blocked = table->try_insert(one(6));  // cursor 12 + 2 > 12
  EXPECT_EQ(blocked.kind, Kind::kWouldBlock);
  EXPECT_EQ(blocked.error.message,
            "insert waits for samples: cursor 12 + 1 items x 2 samples would pass 12");
  EXPECT_EQ(table->insert(one(6), 1ns).kind, Kind::kWouldBlock);
  EXPECT_FALSE(table->insert_block_reason().empty());
  EXPECT_TRUE(table->try_sample(8));  // cursor 4
  EXPECT_EQ(table->sample(1, 1ns).error().code, ErrorCode::kTimeout);
  EXPECT_FALSE(table->sample_block_reason(1).empty());
  EXPECT_EQ(table->try_insert(one(6)).kind,
            Kind::kAccepted);                 // the refused chunk was not marked seen
  EXPECT_DOUBLE_EQ(table->spi(), 8.0 / 3.0);  // 8 samples, 7 - 4 inserts
  expect_ledger(*table);
}

TEST(Table, ReturnsFromEveryCallOnceClosed) {
  auto table = make_table(small_options());
  table->close();
  EXPECT_EQ(table->insert(make_chunk({.steps = 1}), 1h).error.code, ErrorCode::kUnavailable);
  EXPECT_EQ(table->sample(1, 1h).error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(table->sample_block_reason(1), "the table is closed");
}

TEST(Table, NamesTheOptionThatIsOutOfRange) {
  const auto refusal = [](auto change) {
    TableOptions options = small_options();
    change(options);
    const auto table = Table::create(options, small_signature());
    return table ? std::string() : table.error().message;
  };
  EXPECT_NE(refusal([](auto& o) { o.capacity = 0; }).find("capacity 0"), std::string::npos);
  EXPECT_NE(refusal([](auto& o) { o.limiter.min_size = 1001; }).find("min_size"),
            std::string::npos);
  EXPECT_NE(refusal([](auto& o) { o.n_step = 0; }).find("n_step"), std::string::npos);
  EXPECT_NE(refusal([](auto& o) { o.discount = 1.5; }).find("discount"), std::string::npos);
  EXPECT_NE(refusal([](auto& o) { o.selector = "best"; }).find("'best'"), std::string::npos);
  EXPECT_NE(refusal([](auto& o) { o.limiter.samples_per_insert = 1; }).find("error_buffer"),
            std::string::npos);
}

// Random workers, episodes, gaps, resends, deaths and samples: the ledger is exact after every
// call, and nothing but the chunks that are needed stays alive.
TEST(Table, KeepsItsLedgerThroughRandomOperations) {
  Random random(7);
  for (int round = 0; round < 20; ++round) {
    TableOptions options = small_options(static_cast<std::int64_t>(1 + random.below(5)));
    options.capacity = static_cast<std::int64_t>(1 + random.below(40));
    auto table = make_table(options);
    struct Source {
      ChunkHeader next;
      std::shared_ptr<Chunk> last;
    };
    std::vector<Source> sources(3);
    for (std::uint32_t i = 0; i < 3; ++i) sources[i].next = {.worker = i};
    std::uint64_t accepted = 0;
    for (int i = 0; i < 400; ++i) {
      Source& source = sources[random.below(3)];
      ChunkHeader& next = source.next;
      switch (random.below(12)) {
        case 0:  // a chunk is lost
          ++next.sequence;
          next.first_step += 2;
          break;
        case 1:  // the worker is replaced
          ++next.incarnation;
          next.sequence = next.first_step = 0;
          ++next.episode;
          source.last.reset();
          break;
        case 2:
          if (source.last) {
            ASSERT_EQ(table->try_insert(source.last).kind, Kind::kDuplicate);
          }
          break;
        case 3:
          table->abandon(next.worker);
          break;
        case 4:
          if (table->statistics().held_items > 0) take_batch(*table, 4);
          break;
        case 5:
          table->count_lost(3, 2);
          break;
        default: {
          next.steps = static_cast<std::uint32_t>(1 + random.below(6));
          next.end = static_cast<EpisodeEnd>(random.below(3));
          source.last = make_chunk(next);
          ASSERT_EQ(table->try_insert(source.last).kind, Kind::kAccepted);
          accepted += next.steps;
          ++next.sequence;
          next.first_step = next.ends() ? 0 : next.first_step + next.steps;
          next.episode += next.ends() ? 1 : 0;
        }
      }
      expect_ledger(*table);
      const auto s = table->statistics();
      ASSERT_EQ(s.inserted_steps - s.lost_steps, accepted);
      ASSERT_LE(s.held_items, static_cast<std::uint64_t>(options.capacity));
      ASSERT_LE(s.chunks, s.held_steps * 3);
    }
    for (std::uint32_t worker = 0; worker < 3; ++worker) table->abandon(worker);
    EXPECT_EQ(table->statistics().pending_steps, 0U);
  }
}

}  // namespace
}  // namespace troupe::replay
