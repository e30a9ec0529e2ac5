// Sequences and whole episodes against their definition, over random episodes cut into random
// chunks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <tuple>

#include "replay/checkpoint.hpp"
#include "tests/replay/support.hpp"
#include "tests/support/temporary_folder.hpp"

namespace troupe::replay {
namespace {

using namespace testing;

// One item as a row of a batch says it: the numbers of its observations, actions, and so on.
struct Row {
  std::vector<float> observation, action, reward, discount, mask, first;
  auto tied() const { return std::tie(observation, action, reward, discount, mask, first); }
  bool operator<(const Row& other) const { return tied() < other.tied(); }
  bool operator==(const Row& other) const { return tied() == other.tied(); }
};

struct Episode {
  std::uint32_t steps = 0;
  EpisodeEnd end = EpisodeEnd::kTruncated;
};

float observation_at(std::size_t episode, std::size_t step) {
  return static_cast<float>(1000 * (episode + 1) + step);
}

constexpr float kDiscount = 0.5F;

// The item of `steps` steps that begins with step `begin` of all the episodes' steps in a row.
Row expected_row(const std::vector<Episode>& episodes, std::size_t begin, std::uint32_t steps,
                 const ItemShape& shape) {
  std::vector<std::pair<std::size_t, std::size_t>> all;  // episode, step
  for (std::size_t e = 0; e < episodes.size(); ++e)
    for (std::size_t t = 0; t < episodes[e].steps; ++t) all.emplace_back(e, t);
  Row row;
  for (std::uint32_t i = 0; i < shape.length; ++i) {
    if (i >= steps) {
      for (auto* column : {&row.action, &row.reward, &row.discount, &row.mask, &row.first})
        column->push_back(0);
      row.observation.push_back(0);
      continue;
    }
    const auto [episode, step] = all[begin + i];
    const bool last = step + 1 == episodes[episode].steps;
    row.observation.push_back(observation_at(episode, step));
    row.action.push_back(observation_at(episode, step) + 0.5F);
    row.reward.push_back(static_cast<float>(step));
    row.discount.push_back(last && episodes[episode].end == EpisodeEnd::kTerminated ? 0
                                                                                    : kDiscount);
    row.mask.push_back(i < shape.burn_in ? 0 : 1);
    row.first.push_back(step == 0 ? 1 : 0);
  }
  const auto [episode, step] = all[begin + steps - 1];
  row.observation.insert(row.observation.begin() + steps, observation_at(episode, step + 1));
  return row;
}

// By the words of item_shape.hpp.
std::multiset<Row> expected_rows(const std::vector<Episode>& episodes, const ItemShape& shape) {
  std::multiset<Row> rows;
  std::size_t begin = 0, total = 0;
  for (const Episode& episode : episodes) total += episode.steps;
  if (shape.across_episodes) {
    for (std::size_t t = 0; t + shape.length <= total; t += shape.period)
      rows.insert(expected_row(episodes, t, shape.length, shape));
    return rows;
  }
  for (const Episode& episode : episodes) {
    if (shape.kind == ItemShape::Kind::kEpisode) {
      if (episode.steps <= shape.length)
        rows.insert(expected_row(episodes, begin, episode.steps, shape));
    } else {
      std::uint32_t t = 0, covered = 0;
      for (; t + shape.length <= episode.steps; t += shape.period) {
        rows.insert(expected_row(episodes, begin + t, shape.length, shape));
        covered = t + shape.length;
      }
      if (covered < episode.steps && shape.tail == ItemShape::Tail::kPad)
        rows.insert(expected_row(episodes, begin + t, episode.steps - t, shape));
    }
    begin += episode.steps;
  }
  return rows;
}

Signature scalar_signature() {
  return {.observation = {{"observation", DType::kF32, {}}},
          .step = {{"action", DType::kF32, {}}},
          .spec_hash = 77};
}

ChunkPtr chunk_of(const ChunkHeader& header) {
  auto chunk = std::make_shared<Chunk>();
  chunk->header = header;
  chunk->header.spec_hash = 77;
  std::vector<float> observation, action;
  for (std::uint32_t row = 0; row < header.observation_rows(); ++row)
    observation.push_back(observation_at(header.episode, header.first_step + row));
  for (std::uint32_t row = 0; row < header.steps; ++row) {
    action.push_back(observation[row] + 0.5F);
    chunk->reward.push_back(static_cast<float>(header.first_step + row));
  }
  chunk->observation = {bytes_of(observation)};
  chunk->step = {bytes_of(action)};
  return chunk;
}

std::vector<ChunkPtr> cut(const std::vector<Episode>& episodes, Random& random) {
  std::vector<ChunkPtr> chunks;
  for (std::size_t e = 0; e < episodes.size(); ++e) {
    for (std::uint32_t t = 0; t < episodes[e].steps;) {
      const auto steps =
          1 + static_cast<std::uint32_t>(random.below(std::min(9U, episodes[e].steps - t)));
      const bool last = t + steps == episodes[e].steps;
      chunks.push_back(chunk_of({.sequence = chunks.size(),
                                 .episode = e,
                                 .first_step = t,
                                 .steps = steps,
                                 .end = last ? episodes[e].end : EpisodeEnd::kContinues}));
      t += steps;
    }
  }
  return chunks;
}

TableOptions options_of(const ItemShape& shape) {
  TableOptions options;
  options.capacity = 1000;
  options.discount = kDiscount;
  options.items = shape;
  return options;
}

// Every item that the table holds, each once: drawn until as many different ones were seen.
std::multiset<Row> held_rows(Table& table) {
  std::map<std::uint32_t, Row> rows;
  const auto held = table.statistics().held_items;
  for (int tries = 0; rows.size() < held && tries < 200; ++tries) {
    const Batch batch = take_batch(table, 64);
    for (std::size_t i = 0; i < 64; ++i) {
      const auto part = [&](const char* name) {
        const auto whole = batch.floats(name);
        const auto size = whole.size() / 64;
        return std::vector<float>(whole.begin() + static_cast<std::ptrdiff_t>(i * size),
                                  whole.begin() + static_cast<std::ptrdiff_t>((i + 1) * size));
      };
      rows[batch.keys[i].slot] = {part("observation"), part("action"), part("reward"),
                                  part("discount"),    part("mask"),   part("first")};
    }
  }
  std::multiset<Row> all;
  for (const auto& [slot, row] : rows) all.insert(row);
  return all;
}

void expect_ledger(const Table& table) {
  const TableStatistics s = table.statistics();
  EXPECT_EQ(s.inserted_steps, s.held_steps + s.removed_steps + s.lost_steps);
  EXPECT_EQ(s.inserted_items, s.held_items + s.removed_items + s.lost_items);
}

ItemShape random_shape(Random& random) {
  ItemShape shape;
  shape.kind = random.below(4) == 0 ? ItemShape::Kind::kEpisode : ItemShape::Kind::kSequence;
  shape.length = 1 + static_cast<std::uint32_t>(random.below(24));
  if (shape.kind == ItemShape::Kind::kSequence) {
    shape.period = 1 + static_cast<std::uint32_t>(random.below(shape.length));
    shape.burn_in = static_cast<std::uint32_t>(random.below(shape.length));
    shape.across_episodes = random.below(3) == 0;
  }
  shape.tail = random.below(2) == 0 ? ItemShape::Tail::kPad : ItemShape::Tail::kDrop;
  return shape;
}

std::vector<Episode> random_episodes(Random& random) {
  std::vector<Episode> episodes(1 + random.below(6));
  for (Episode& episode : episodes)
    episode = {1 + static_cast<std::uint32_t>(random.below(40)),
               random.below(2) == 0 ? EpisodeEnd::kTruncated : EpisodeEnd::kTerminated};
  return episodes;
}

TEST(Sequences, AgreeWithTheirDefinitionOnRandomEpisodesAndChunks) {
  Random random(5);
  for (int round = 0; round < 300; ++round) {
    const ItemShape shape = random_shape(random);
    const auto episodes = random_episodes(random);
    const auto table = Table::create(options_of(shape), scalar_signature()).value();
    for (const ChunkPtr& chunk : cut(episodes, random)) {
      ASSERT_EQ(table->try_insert(chunk).kind, InsertOutcome::Kind::kAccepted);
      expect_ledger(*table);
    }
    const auto expected = expected_rows(episodes, shape);
    ASSERT_EQ(table->statistics().held_items, expected.size()) << "round " << round;
    if (expected.empty()) continue;
    ASSERT_EQ(held_rows(*table), expected) << "round " << round;
  }
}

TEST(Sequences, KeepTheLedgerWhileTheTableForgets) {
  Random random(6);
  for (int round = 0; round < 50; ++round) {
    const ItemShape shape = random_shape(random);
    TableOptions options = options_of(shape);
    options.capacity = 3;
    const auto table = Table::create(options, scalar_signature()).value();
    for (const ChunkPtr& chunk : cut(random_episodes(random), random)) {
      (void)table->try_insert(chunk);
      expect_ledger(*table);
    }
    table->abandon(0);
    expect_ledger(*table);
    EXPECT_EQ(table->statistics().pending_steps, 0U);
    EXPECT_LE(table->statistics().held_items, 3U);
  }
}

TEST(Sequences, GoOnAfterACheckpointAsIfNothingHadHappened) {
  Random random(7);
  const TemporaryFolder folder;
  for (int round = 0; round < 100; ++round) {
    const ItemShape shape = random_shape(random);
    const auto episodes = random_episodes(random);
    const auto chunks = cut(episodes, random);
    const auto table = Table::create(options_of(shape), scalar_signature()).value();
    const std::size_t half = random.below(chunks.size() + 1);
    for (std::size_t i = 0; i < half; ++i) (void)table->try_insert(chunks[i]);
    ASSERT_TRUE(write_checkpoint(table->snapshot(), folder / "table"));
    const auto resumed = Table::create(options_of(shape), scalar_signature()).value();
    const auto restored = restore(*resumed, folder / "table");
    ASSERT_TRUE(restored) << restored.error().message;
    for (std::size_t i = half; i < chunks.size(); ++i) {
      EXPECT_EQ(resumed->try_insert(chunks[i]).items, table->try_insert(chunks[i]).items);
    }
    expect_ledger(*resumed);
    if (table->statistics().held_items == 0) continue;
    EXPECT_EQ(take_batch(*resumed, 32).keys, take_batch(*table, 32).keys);
    EXPECT_EQ(held_rows(*resumed), expected_rows(episodes, shape)) << "round " << round;
  }
}

TEST(Sequences, OfAnotherShapeAreNotRestored) {
  const TemporaryFolder folder;
  ItemShape shape{.kind = ItemShape::Kind::kSequence, .length = 8, .period = 4};
  const auto table = Table::create(options_of(shape), scalar_signature()).value();
  ASSERT_TRUE(write_checkpoint(table->snapshot(), folder / "table"));
  shape.period = 8;
  const auto other = Table::create(options_of(shape), scalar_signature()).value();
  const auto restored = restore(*other, folder / "table");
  ASSERT_FALSE(restored);
  EXPECT_THAT(restored.error().message, ::testing::HasSubstr("period 4"));
  EXPECT_THAT(restored.error().message, ::testing::HasSubstr("period 8"));
}

TEST(Sequences, AGapDropsTheOpenOneAndNothingIsJoinedOverIt) {
  const ItemShape shape{.kind = ItemShape::Kind::kSequence, .length = 4, .period = 4};
  const auto table = Table::create(options_of(shape), scalar_signature()).value();
  (void)table->try_insert(chunk_of({.sequence = 0, .steps = 3}));
  (void)table->try_insert(chunk_of({.sequence = 1, .first_step = 5, .steps = 5}));
  EXPECT_EQ(table->statistics().dropped_steps, 3U);
  EXPECT_EQ(table->statistics().held_items, 1U);
  const Batch batch = take_batch(*table, 1);
  EXPECT_EQ(batch.floats("observation")[0], observation_at(0, 5));
  expect_ledger(*table);
}

TEST(Sequences, AnEpisodeThatIsTooLongOrBegunInTheMiddleIsDroppedAndCounted) {
  const ItemShape shape{.kind = ItemShape::Kind::kEpisode, .length = 4};
  const auto table = Table::create(options_of(shape), scalar_signature()).value();
  const auto end = EpisodeEnd::kTerminated;
  (void)table->try_insert(chunk_of({.sequence = 0, .episode = 0, .steps = 5, .end = end}));
  (void)table->try_insert(
      chunk_of({.sequence = 1, .episode = 1, .first_step = 1, .steps = 2, .end = end}));
  (void)table->try_insert(chunk_of({.sequence = 2, .episode = 2, .steps = 4, .end = end}));
  EXPECT_EQ(table->statistics().held_items, 1U);
  EXPECT_EQ(table->statistics().dropped_steps, 7U);
  expect_ledger(*table);
}

TEST(Sequences, ShapesOutOfRangeAreRefusedByName) {
  using Kind = ItemShape::Kind;
  const std::pair<ItemShape, const char*> wrong[] = {
      {{.kind = Kind::kSequence, .length = 0}, "length"},
      {{.kind = Kind::kEpisode, .length = 70000}, "length"},
      {{.kind = Kind::kSequence, .length = 4, .period = 5}, "period"},
      {{.kind = Kind::kSequence, .length = 4, .period = 0}, "period"},
      {{.kind = Kind::kSequence, .length = 4, .period = 1, .burn_in = 4}, "burn_in"},
      {{.kind = Kind::kEpisode, .length = 4, .period = 2}, "period"},
      {{.kind = Kind::kEpisode, .length = 4, .burn_in = 1}, "burn_in"},
      {{.kind = Kind::kNStep, .across_episodes = true}, "across_episodes"}};
  for (const auto& [shape, name] : wrong) {
    const auto table = Table::create(options_of(shape), scalar_signature());
    ASSERT_FALSE(table) << name;
    EXPECT_THAT(table.error().message, ::testing::HasSubstr(name));
  }
}

}  // namespace
}  // namespace troupe::replay
