// Items against closed forms and a slow reference, and windows that break in every way.
#include "replay/item_builder.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <set>

#include "envs/spec/random.hpp"
#include "tests/replay/support.hpp"

namespace troupe::replay {
namespace {

using namespace testing;
using Verdict = ItemBuilder::Verdict;

// A builder with the chunks it was given, so that items can be looked up.
struct Harness {
  explicit Harness(std::uint32_t n_step, double discount = 0.9)
      : builder({.length = n_step}, discount) {}

  std::vector<BuiltItem> add(const ChunkPtr& chunk) {
    EXPECT_EQ(builder.judge(chunk->header), Verdict::kNew);
    const std::uint64_t expected = builder.forecast(chunk->header);
    chunks.push_back(chunk);
    out.clear();
    builder.add(packed(*chunk), static_cast<ChunkSlot>(chunks.size() - 1), out);
    EXPECT_EQ(out.items.size(), expected);
    dropped += out.dropped_steps;
    for (const ChunkSlot slot : out.released) EXPECT_TRUE(released.insert(slot).second);
    return out.items;
  }
  std::vector<BuiltItem> add(const ChunkHeader& header) { return add(make_chunk(header)); }

  ItemBuilder builder;
  ItemBuilder::Addition out;
  std::vector<ChunkPtr> chunks;
  std::set<ChunkSlot> released;
  std::uint64_t dropped = 0;
};

TEST(ItemBuilder, NeverReachesBeyondAnEpisodeShorterThanN) {
  // T = 3, n = 5, reward t + 1, gamma 0.9: nothing is complete before the episode ends.
  for (const EpisodeEnd end : {EpisodeEnd::kTruncated, EpisodeEnd::kTerminated}) {
    Harness harness(5);
    const auto reward = [](std::uint32_t t) { return t + 1.0; };
    EXPECT_TRUE(harness.add(make_chunk({.sequence = 0, .steps = 2}, reward)).empty());
    const auto items =
        harness.add(make_chunk({.sequence = 1, .first_step = 2, .steps = 1, .end = end}, reward));
    ASSERT_EQ(items.size(), 3U);
    EXPECT_FLOAT_EQ(items[0].reward, 1 + 0.9F * 2 + 0.81F * 3);
    EXPECT_FLOAT_EQ(items[1].reward, 2 + 0.9F * 3);
    EXPECT_FLOAT_EQ(items[2].reward, 3);
    for (std::uint32_t t = 0; t < 3; ++t) {
      EXPECT_EQ(items[t].steps, 3 - t);
      EXPECT_EQ(items[t].terminal, end == EpisodeEnd::kTerminated);
    }
    EXPECT_EQ(harness.builder.open_windows(), 0U);
    EXPECT_EQ(harness.released.size(), 2U);
  }
}

TEST(ItemBuilder, CompletesAnItemAsSoonAsItsLastObservationIsKnown) {
  Harness harness(2);
  EXPECT_EQ(harness.add({.sequence = 0, .steps = 2}).size(), 0U);  // s_0 s_1: s_2 is not known
  EXPECT_EQ(harness.add({.sequence = 1, .first_step = 2, .steps = 1}).size(), 1U);  // s_2: item 0
  EXPECT_EQ(harness.add({.sequence = 2, .first_step = 3, .steps = 3}).size(), 3U);  // s_5: 1, 2, 3
  EXPECT_EQ(harness.builder.pending_steps(), 2U);
}

TEST(ItemBuilder, DropsTheWindowWhereStepsAreMissing) {
  Harness harness(3);
  harness.add({.sequence = 0, .steps = 5});  // items 0, 1; steps 2, 3, 4 wait
  const auto items = harness.add({.sequence = 2, .first_step = 7, .steps = 4});
  ASSERT_EQ(items.size(), 1U);  // step 7 with s_10; nothing joins 4 and 7
  EXPECT_EQ(items[0].chunk, 1U);
  EXPECT_EQ(harness.dropped, 3U);
  EXPECT_FALSE(harness.out.continues);
  EXPECT_EQ(harness.released, std::set<ChunkSlot>{0});
}

TEST(ItemBuilder, DropsTheWindowOfAnAbandonedEpisode) {
  Harness harness(3);
  harness.add({.sequence = 0, .episode = 1, .steps = 2});
  // The next episode happens to start where the old one stopped counting.
  EXPECT_TRUE(harness.add({.sequence = 1, .episode = 2, .first_step = 2, .steps = 2}).empty());
  EXPECT_EQ(harness.dropped, 2U);
  EXPECT_EQ(harness.builder.pending_steps(), 2U);
}

TEST(ItemBuilder, DropsAllWindowsOfAnOlderIncarnation) {
  Harness harness(3);
  harness.add({.sequence = 0, .environment = 0, .steps = 2});
  harness.add({.sequence = 1, .environment = 1, .steps = 2});
  harness.add({.incarnation = 1, .sequence = 0, .environment = 0, .first_step = 2, .steps = 2});
  EXPECT_EQ(harness.dropped, 4U);
  EXPECT_EQ(harness.builder.open_windows(), 1U);
  EXPECT_EQ(harness.builder.judge({.sequence = 5, .steps = 1}), Verdict::kStale);
}

TEST(ItemBuilder, AbandonsAWorkerWithoutTouchingOthers) {
  Harness harness(3);
  for (std::uint32_t worker = 0; worker < 3; ++worker)
    harness.add({.worker = worker, .sequence = 0, .steps = 2});
  harness.out.clear();
  harness.builder.abandon(1, harness.out);
  EXPECT_EQ(harness.out.released, std::vector<ChunkSlot>{1});
  EXPECT_EQ(harness.builder.pending_steps(), 4U);
}

TEST(ItemBuilder, KnowsEverySequenceItHasSeenAndNoOther) {
  ItemBuilder builder({.length = 1}, 0.9);
  ItemBuilder::Addition out;
  const auto add = [&](std::uint64_t sequence) {
    builder.add(packed(*make_chunk({.sequence = sequence, .episode = sequence, .steps = 1})), 0,
                out);
  };
  const auto judge = [&](std::uint64_t sequence) {
    return builder.judge({.sequence = sequence, .steps = 1});
  };
  add(3);
  add(70);
  add(5);  // late, but new
  for (std::uint64_t s = 0; s < 80; ++s)
    EXPECT_EQ(judge(s), s == 3 || s == 5 || s == 70 ? Verdict::kDuplicate : Verdict::kNew) << s;
  add(70 + ItemBuilder::kSequenceWindow);
  EXPECT_EQ(judge(70), Verdict::kDuplicate);  // too old to be told from a resent one
  EXPECT_EQ(judge(71), Verdict::kNew);
  EXPECT_EQ(judge(71 + ItemBuilder::kSequenceWindow), Verdict::kNew);
  add(1000000);
  EXPECT_EQ(judge(999999), Verdict::kNew);
  EXPECT_EQ(judge(1000000), Verdict::kDuplicate);
}

// Random episodes cut into random chunks, several environments interleaved: every item equals the
// definition applied to the whole episode.
TEST(ItemBuilder, AgreesWithTheDefinitionOnRandomEpisodes) {
  Random random(6);
  for (int round = 0; round < 300; ++round) {
    const auto n = static_cast<std::uint32_t>(1 + random.below(7));
    Harness harness(n, 0.95);
    std::uint64_t sequence = 0;
    for (std::uint64_t episode = 0; episode < 4; ++episode) {
      const auto length = static_cast<std::uint32_t>(1 + random.below(20));
      const EpisodeEnd end =
          random.below(2) == 0 ? EpisodeEnd::kTerminated : EpisodeEnd::kTruncated;
      std::vector<double> rewards(length);
      for (double& reward : rewards) reward = static_cast<float>(random.uniform(-1, 1));
      std::uint32_t built = 0;
      for (std::uint32_t first = 0; first < length;) {
        const auto count = static_cast<std::uint32_t>(1 + random.below(length - first));
        const bool last = first + count == length;
        const auto items = harness.add(make_chunk({.sequence = sequence++,
                                                   .episode = episode,
                                                   .first_step = first,
                                                   .steps = count,
                                                   .end = last ? end : EpisodeEnd::kContinues},
                                                  [&](std::uint32_t t) { return rewards[t]; }));
        for (const BuiltItem& item : items) {
          const std::uint32_t t = harness.chunks[item.chunk]->header.first_step + item.row;
          ASSERT_EQ(t, built++);
          ASSERT_EQ(item.steps, std::min(n, length - t));
          double sum = 0;
          for (std::uint32_t i = 0; i < item.steps; ++i) sum += std::pow(0.95, i) * rewards[t + i];
          ASSERT_NEAR(item.reward, sum, 1e-6);
          ASSERT_EQ(item.terminal, end == EpisodeEnd::kTerminated && t + item.steps == length);
        }
        first += count;
      }
      ASSERT_EQ(built, length);
    }
    ASSERT_EQ(harness.released.size(), harness.chunks.size());
    ASSERT_EQ(harness.builder.pending_steps(), 0U);
  }
}

TEST(ItemBuilder, GoesOnAfterSaveAndLoad) {
  Harness harness(3);
  harness.add({.sequence = 0, .steps = 2});
  harness.add({.worker = 1, .sequence = 4, .environment = 2, .episode = 8, .steps = 6});
  std::vector<std::uint8_t> bytes;
  ByteWriter out(bytes);
  harness.builder.save(out);
  const auto find = [&](ChunkSlot slot, ChunkSlot) { return packed(*harness.chunks[slot]); };
  ItemBuilder copy({.length = 3}, 0.9);
  ByteReader in(bytes);
  ASSERT_TRUE(copy.load(in, find));
  EXPECT_EQ(copy.pending_steps(), harness.builder.pending_steps());
  EXPECT_EQ(copy.held_chunks(), harness.builder.held_chunks());
  EXPECT_EQ(copy.judge({.worker = 1, .sequence = 4, .steps = 1}), Verdict::kDuplicate);
  const ChunkHeader next{.sequence = 1, .first_step = 2, .steps = 4};
  ItemBuilder::Addition from_copy;
  copy.add(packed(*make_chunk(next)), 2, from_copy);
  const auto items = harness.add(next);
  ASSERT_EQ(from_copy.items.size(), items.size());
  for (std::size_t i = 0; i < items.size(); ++i) {
    EXPECT_EQ(from_copy.items[i].row, items[i].row);
    EXPECT_EQ(from_copy.items[i].reward, items[i].reward);
  }
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    ByteReader cut(std::span<const std::uint8_t>(bytes).first(size));
    EXPECT_FALSE(copy.load(cut, find)) << size;
  }
  ByteReader again(bytes);
  EXPECT_FALSE(copy.load(again, [](ChunkSlot, ChunkSlot) { return PackedPtr(); }));
}

// What a file says of an open window must be what some stream leaves behind, or steps are counted
// twice or never.
TEST(ItemBuilder, LoadsNoWindowWhoseItemsAndStepsDoNotFit) {
  for (const ItemShape& shape :
       {ItemShape{.length = 3},
        ItemShape{.kind = ItemShape::Kind::kSequence, .length = 4, .period = 3}}) {
    ItemBuilder builder(shape, 0.9);
    const ChunkPtr chunk = make_chunk({.sequence = 0, .steps = 6});
    ItemBuilder::Addition addition;
    builder.add(packed(*chunk), 0, addition);
    std::vector<std::uint8_t> bytes;
    ByteWriter out(bytes);
    builder.save(out);
    // The last of the four positions is followed by the window's only chunk.
    const std::size_t owned = bytes.size() - sizeof(std::uint64_t) - sizeof(ChunkSlot) - 8;
    std::uint64_t value = 0, next_item = 0;
    std::memcpy(&value, &bytes[owned], 8);
    std::memcpy(&next_item, &bytes[owned - 8], 8);
    const std::uint64_t shared = shape.is_span() ? shape.length - shape.period : 0;
    ASSERT_EQ(next_item, 3U);
    ASSERT_EQ(value, next_item + shared);
    for (std::uint64_t other = 0; other <= 6; ++other) {
      std::memcpy(&bytes[owned], &other, 8);
      ByteReader in(bytes);
      EXPECT_EQ(
          ItemBuilder(shape, 0.9).load(in, [&](ChunkSlot, ChunkSlot) { return packed(*chunk); }),
          other >= next_item && other <= next_item + shared)
          << other;
    }
  }
}

}  // namespace
}  // namespace troupe::replay
