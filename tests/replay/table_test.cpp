// The table as its users see it: what goes in comes out right, and the ledger holds at every
// moment.
#include "replay/table.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

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

}  // namespace
}  // namespace troupe::replay
