// Stacks of frames that are stored once, against a slow reference over random episodes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <tuple>

#include "replay/checkpoint.hpp"
#include "tests/replay/pixel_support.hpp"

namespace troupe::replay {
namespace {

using namespace testing;
using ::testing::HasSubstr;
using Kind = InsertOutcome::Kind;

// What the batch must show for step t: frames t - k + 1 to t, the first one in the place of those
// before it.
std::vector<std::uint8_t> reference_stack(std::uint64_t episode, std::uint32_t t, std::uint32_t k) {
  std::vector<std::uint8_t> stack;
  for (std::uint32_t i = 0; i < k; ++i) {
    const std::uint32_t back = k - 1 - i;
    const auto one = picture(episode, t > back ? t - back : 0);
    stack.insert(stack.end(), one.begin(), one.end());
  }
  return stack;
}

std::vector<std::uint8_t> row_of(const Batch& batch, const char* name, std::size_t row,
                                 std::size_t bytes) {
  const auto all = batch.bytes(batch.find(name)).subspan(row * bytes, bytes);
  return {all.begin(), all.end()};
}

// Episodes of random lengths, cut into chunks of random lengths, from two environments in turn.
class Episodes {
 public:
  explicit Episodes(std::uint64_t seed) : random_(seed) {}

  ChunkPtr next() {
    Stream& stream = streams_[random_.below(2)];
    if (stream.left == 0) {
      ++stream.episode;
      stream.step = 0;
      stream.left = static_cast<std::uint32_t>(1 + random_.below(12));
      lengths[{stream.environment, stream.episode}] = stream.left;
    }
    const auto steps = static_cast<std::uint32_t>(1 + random_.below(std::min(stream.left, 5U)));
    stream.left -= steps;
    const ChunkHeader header{.sequence = sequence_++,
                             .environment = stream.environment,
                             .episode = stream.episode,
                             .first_step = stream.step,
                             .steps = steps,
                             .end = stream.left > 0           ? EpisodeEnd::kContinues
                                    : stream.episode % 3 == 0 ? EpisodeEnd::kTerminated
                                                              : EpisodeEnd::kTruncated};
    stream.step += steps;
    return pixel_chunk(header);
  }

  std::map<std::pair<std::uint32_t, std::uint64_t>, std::uint32_t> lengths;

 private:
  struct Stream {
    std::uint32_t environment = 0;
    std::uint64_t episode = 0;
    std::uint32_t step = 0, left = 0;
  };
  Random random_;
  Stream streams_[2] = {{0, 0, 0, 0}, {1, 100, 0, 0}};
  std::uint64_t sequence_ = 0;
};

TEST(FrameStack, ShowsTheReferencesStacksInTransitionsOfRandomEpisodes) {
  for (const std::uint32_t k : {1U, 3U, 4U})
    for (const std::int64_t n : {1, 3, 7})
      for (const Compression packing :
           {Compression::kNone, Compression::kLz4, Compression::kZstd}) {
        TableOptions options = small_options(n);
        options.capacity = 60;  // chunks leave all the time, those before an item's too
        options.compression = {{"pixels", packing}};
        auto table = Table::create(options, pixel_signature(k)).value();
        Episodes episodes(k + 10 * static_cast<std::uint64_t>(n));
        for (int i = 0; i < 200; ++i) {
          ASSERT_EQ(table->try_insert(episodes.next()).kind, Kind::kAccepted);
          if (table->statistics().held_items == 0) continue;
          const Batch batch = take_batch(*table, 8);
          for (std::size_t row = 0; row < 8; ++row) {
            const auto episode = static_cast<std::uint64_t>(batch.floats("state")[2 * row]);
            const auto t = static_cast<std::uint32_t>(batch.floats("state")[2 * row + 1]);
            const auto after = static_cast<std::uint32_t>(batch.floats("next_state")[2 * row + 1]);
            const std::uint32_t length = episodes.lengths.at({episode >= 100 ? 1U : 0U, episode});
            ASSERT_EQ(after, std::min(t + static_cast<std::uint32_t>(n), length));
            const std::size_t bytes = k * kPictureBytes;
            ASSERT_EQ(row_of(batch, "pixels", row, bytes), reference_stack(episode, t, k))
                << "k " << k << ", n " << n << ", episode " << episode << ", step " << t;
            ASSERT_EQ(row_of(batch, "next_pixels", row, bytes), reference_stack(episode, after, k))
                << "k " << k << ", n " << n << ", episode " << episode << ", step " << after;
          }
        }
        const TableStatistics s = table->statistics();
        ASSERT_EQ(s.inserted_steps, s.held_steps + s.removed_steps);
      }
}

TEST(FrameStack, ShowsTheReferencesStacksInSequences) {
  for (const bool across : {false, true})
    for (const std::uint32_t k : {2U, 4U}) {
      TableOptions options = small_options();
      options.capacity = 20;
      options.items = {
          .kind = ItemShape::Kind::kSequence, .length = 5, .period = 2, .across_episodes = across};
      auto table = Table::create(options, pixel_signature(k)).value();
      EXPECT_EQ(table->batch_columns()[0].shape, (std::vector<std::int64_t>{6, k, 20, 20, 3}));
      Episodes episodes(k);
      for (int i = 0; i < 300; ++i) {
        ASSERT_EQ(table->try_insert(episodes.next()).kind, Kind::kAccepted);
        if (table->statistics().held_items == 0) continue;
        const Batch batch = take_batch(*table, 4);
        for (std::size_t row = 0; row < 4; ++row)
          for (std::size_t t = 0; t < 6; ++t) {
            const std::size_t at = 6 * row + t;
            const float mask = t == 0 ? 1.0F : batch.floats("mask")[5 * row + t - 1];
            if (mask == 0) continue;  // beyond the item's last observation
            const auto episode = static_cast<std::uint64_t>(batch.floats("state")[2 * at]);
            const auto step = static_cast<std::uint32_t>(batch.floats("state")[2 * at + 1]);
            ASSERT_EQ(row_of(batch, "pixels", at, k * kPictureBytes),
                      reference_stack(episode, step, k))
                << "across " << across << ", k " << k << ", step " << step;
          }
      }
    }
}

TEST(FrameStack, EndsATruncatedEpisodeWithItsOwnFrames) {
  TableOptions options = small_options(5);
  auto table = Table::create(options, pixel_signature(3)).value();
  // T = 3, n = 5, in chunks of one step; the next episode is there already.
  for (std::uint32_t t = 0; t < 3; ++t)
    ASSERT_EQ(table
                  ->try_insert(pixel_chunk(
                      {.sequence = t,
                       .episode = 1,
                       .first_step = t,
                       .steps = 1,
                       .end = t == 2 ? EpisodeEnd::kTruncated : EpisodeEnd::kContinues}))
                  .kind,
              Kind::kAccepted);
  ASSERT_EQ(table->try_insert(pixel_chunk({.sequence = 3, .episode = 2, .steps = 8})).kind,
            Kind::kAccepted);
  const Batch batch = take_batch(*table, 64);
  for (std::size_t row = 0; row < 64; ++row) {
    if (batch.floats("state")[2 * row] != 1) continue;
    EXPECT_EQ(row_of(batch, "next_pixels", row, 3 * kPictureBytes), reference_stack(1, 3, 3));
    EXPECT_GT(batch.floats("discount")[row], 0);
  }
}

TEST(FrameStack, BuildsNoItemWhoseFramesWereLost) {
  auto table = Table::create(small_options(1), pixel_signature(3)).value();
  ASSERT_EQ(table->try_insert(pixel_chunk({.sequence = 0, .steps = 4})).kind, Kind::kAccepted);
  EXPECT_EQ(table->statistics().held_items, 3U);
  // Steps 4 and 5 never came: the stacks of 6 and 7 cannot be shown.
  ASSERT_EQ(table
                ->try_insert(pixel_chunk(
                    {.sequence = 2, .first_step = 6, .steps = 4, .end = EpisodeEnd::kTruncated}))
                .kind,
            Kind::kAccepted);
  const TableStatistics s = table->statistics();
  EXPECT_EQ(s.held_items, 3U + 2U);
  EXPECT_EQ(s.dropped_steps, 1U + 2U);
  EXPECT_EQ(s.inserted_steps, s.held_steps + s.removed_steps);
  const Batch batch = take_batch(*table, 64);
  for (std::size_t row = 0; row < 64; ++row) {
    const auto t = static_cast<std::uint32_t>(batch.floats("state")[2 * row + 1]);
    EXPECT_TRUE(t < 3 || t > 7) << t;
    EXPECT_EQ(row_of(batch, "pixels", row, 3 * kPictureBytes), reference_stack(0, t, 3));
  }
}

TEST(FrameStack, StoresEachFrameOnce) {
  auto table = Table::create(small_options(3), pixel_signature(4)).value();
  for (std::uint32_t i = 0; i < 10; ++i)
    table->try_insert(pixel_chunk({.sequence = i, .first_step = 8 * i, .steps = 8}));
  // 80 steps of a frame, two floats, an action and a reward.
  EXPECT_EQ(table->statistics().raw_bytes, 80 * (kPictureBytes + 8 + 4 + 4));
}

TEST(FrameStack, GoesOnAfterACheckpoint) {
  const auto path = std::filesystem::path(::testing::TempDir()) / "stacks.table";
  TableOptions options = small_options(2);
  options.capacity = 50;
  auto table = Table::create(options, pixel_signature(3)).value();
  Episodes episodes(5);
  for (int i = 0; i < 60; ++i) table->try_insert(episodes.next());
  ASSERT_TRUE(write_checkpoint(table->snapshot(), path));
  auto restored = Table::create(options, pixel_signature(3)).value();
  const auto notes = restore(*restored, path);
  ASSERT_TRUE(notes) << notes.error().message;
  for (int i = 0; i < 60; ++i) {
    const ChunkPtr chunk = episodes.next();
    ASSERT_EQ(table->try_insert(chunk).kind, restored->try_insert(chunk).kind);
    const Batch a = take_batch(*table, 4), b = take_batch(*restored, 4);
    for (std::size_t row = 0; row < 4; ++row)
      ASSERT_EQ(row_of(a, "pixels", row, 3 * kPictureBytes),
                row_of(b, "pixels", row, 3 * kPictureBytes));
  }
  EXPECT_THAT(restore(*Table::create(options, pixel_signature(2)).value(), path).error().message,
              HasSubstr("other frame stacks"));
  std::filesystem::remove(path);
}

TEST(FrameStack, RefusesNonsense) {
  const auto message = [](std::vector<std::uint32_t> stack) {
    Signature signature = pixel_signature(1);
    signature.frame_stack = std::move(stack);
    return Table::create(small_options(), signature).error().message;
  };
  EXPECT_THAT(message({0}), HasSubstr("frame_stack 0 is not in 1..128"));
  EXPECT_THAT(message({129}), HasSubstr("frame_stack 129"));
  EXPECT_THAT(message({1, 1, 1}), HasSubstr("more entries"));
}

}  // namespace
}  // namespace troupe::replay
