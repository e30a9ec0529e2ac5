// Packed columns: what goes in comes out, row by row; what is corrupt is an error.
#include "replay/packed_chunk.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "replay/gather.hpp"
#include "replay/row_reader.hpp"
#include "tests/replay/pixel_support.hpp"

namespace troupe::replay {
namespace {

using namespace testing;
using ::testing::HasSubstr;
using Kind = InsertOutcome::Kind;

const ChunkLayout& layout_with(Compression packing) {
  return ChunkLayout::of(pixel_signature(1), {{"pixels", packing}, {"state", packing}});
}

std::vector<std::uint8_t> record_of(const PackedChunk& chunk) {
  std::vector<std::uint8_t> record;
  chunk.append_head(record);
  record.insert(record.end(), chunk.payload().begin(), chunk.payload().end());
  return record;
}

TEST(PackedChunk, GivesBackEveryRangeOfRows) {
  for (const Compression packing : {Compression::kNone, Compression::kLz4, Compression::kZstd})
    for (const std::uint32_t steps : {1U, 2U, 81U, 163U, 200U}) {
      const auto chunk = pixel_chunk({.steps = steps, .end = EpisodeEnd::kTruncated});
      const PackedPtr packed = PackedChunk::pack(*chunk, layout_with(packing));
      ASSERT_EQ(packed->header(77), chunk->header);
      ASSERT_EQ(packed->raw_bytes(), chunk->bytes());
      Random random(steps);
      RowReader reader;
      for (int i = 0; i < 50; ++i) {
        const std::size_t first = random.below(steps + 1);
        const std::size_t count = 1 + random.below(steps + 1 - first);
        std::vector<std::uint8_t> rows(count * kPictureBytes);
        ASSERT_TRUE(reader.copy(*packed, 0, first, count, rows.data()));
        ASSERT_TRUE(std::equal(
            rows.begin(), rows.end(),
            chunk->observation[0].begin() + static_cast<std::ptrdiff_t>(first * kPictureBytes)));
        std::vector<std::uint8_t> state(count * 8);
        ASSERT_TRUE(reader.copy(*packed, 1, first, count, state.data()));
        ASSERT_TRUE(
            std::equal(state.begin(), state.end(),
                       chunk->observation[1].begin() + static_cast<std::ptrdiff_t>(first * 8)));
      }
      for (std::uint32_t t = 0; t < steps; ++t) ASSERT_EQ(packed->rewards()[t], chunk->reward[t]);
    }
}

TEST(PackedChunk, PacksPicturesAndLeavesNumbersByDefault) {
  const ChunkLayout& layout = ChunkLayout::of(pixel_signature(1), {});
  EXPECT_EQ(layout.columns[0].compression, Compression::kLz4);
  EXPECT_EQ(layout.columns[0].block_rows, 81U);
  EXPECT_EQ(layout.columns[1].compression, Compression::kNone);
  EXPECT_EQ(&layout, &ChunkLayout::of(pixel_signature(3), {}));
  const auto chunk = pixel_chunk({.steps = 100});
  EXPECT_LT(PackedChunk::pack(*chunk, layout)->bytes(), chunk->bytes() / 5);
}

TEST(PackedChunk, ReadsItsOwnRecordAndRefusesEveryShorterOne) {
  for (const Compression packing : {Compression::kNone, Compression::kLz4, Compression::kZstd}) {
    const ChunkLayout& layout = layout_with(packing);
    const auto chunk =
        pixel_chunk({.worker = 3, .sequence = 9, .steps = 3, .end = EpisodeEnd::kTerminated});
    auto record = record_of(*PackedChunk::pack(*chunk, layout));
    const auto back = PackedChunk::parse(record, layout);
    ASSERT_TRUE(back) << back.error().message;
    EXPECT_EQ((*back)->header(77), chunk->header);
    EXPECT_EQ(record_of(**back), record);
    for (std::size_t size = 0; size < record.size(); ++size) {
      const auto cut = PackedChunk::parse(std::span(record).first(size), layout);
      ASSERT_FALSE(cut) << size;
      ASSERT_EQ(cut.error().code, ErrorCode::kCorrupt);
    }
    record.push_back(0);
    EXPECT_FALSE(PackedChunk::parse(record, layout));
  }
}

// Of a record without its checksum every flipped bit is refused, or read without harm.
TEST(PackedChunk, SurvivesEveryFlippedBit) {
  for (const Compression packing : {Compression::kLz4, Compression::kZstd}) {
    const ChunkLayout& layout = layout_with(packing);
    auto record = record_of(*PackedChunk::pack(*pixel_chunk({.steps = 2}), layout));
    int refused = 0, unreadable = 0;
    for (std::size_t bit = 0; bit < 8 * record.size(); ++bit) {
      record[bit / 8] ^= static_cast<std::uint8_t>(1U << bit % 8);
      const auto chunk = PackedChunk::parse(record, layout);
      record[bit / 8] ^= static_cast<std::uint8_t>(1U << bit % 8);
      if (!chunk) {
        ++refused;
        continue;
      }
      RowReader reader;
      for (std::uint32_t row = 0; row < (*chunk)->observation_rows(); ++row) {
        std::vector<std::uint8_t> pixels(kPictureBytes);
        if (!reader.copy(**chunk, 0, row, 1, pixels.data())) ++unreadable;
      }
    }
    EXPECT_GT(refused, 100);
    EXPECT_GT(unreadable, 100);
  }
}

TEST(PackedChunk, MakesGatherSayWhichChunkIsCorrupt) {
  const Signature signature = pixel_signature(1);
  const ChunkLayout& layout = layout_with(Compression::kZstd);
  auto record = record_of(*PackedChunk::pack(*pixel_chunk({.sequence = 7, .steps = 2}), layout));
  // The first block's first byte: after the head, two rewards and a directory of two blocks.
  record[PackedChunk::kRecordHead + 8 + 8] ^= 0xff;
  SampledItems items;
  items.items.emplace_back();
  items.items[0].chunk = PackedChunk::parse(record, layout).value();
  items.items[0].next_row = 1;
  Batch batch(batch_columns_of(signature), 1);
  const auto gathered = gather(items, signature, batch);
  ASSERT_FALSE(gathered);
  EXPECT_EQ(gathered.error().code, ErrorCode::kCorrupt);
  EXPECT_THAT(gathered.error().message, HasSubstr("chunk 7 of worker 0"));
}

TEST(PackedChunk, IsReadByThreadsAtOnce) {
  TableOptions options = small_options(1);
  auto table = Table::create(options, pixel_signature(2)).value();
  for (std::uint32_t i = 0; i < 20; ++i)
    ASSERT_EQ(
        table->try_insert(pixel_chunk({.sequence = i, .first_step = 10 * i, .steps = 10})).kind,
        Kind::kAccepted);
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int turn = 0; turn < 50; ++turn) {
        const Batch batch = take_batch(*table, 16);
        for (std::size_t row = 0; row < 16; ++row) {
          const auto t = static_cast<std::uint32_t>(batch.floats("state")[2 * row + 1]);
          const auto pixels =
              batch.bytes(batch.find("pixels")).subspan((2 * row + 1) * kPictureBytes);
          EXPECT_EQ(pixels[1], t & 0xff);
        }
      }
    });
}

TEST(PackedChunk, RefusesCompressionOfColumnsThatAreNotThere) {
  TableOptions options = small_options();
  options.compression = {{"pixel", Compression::kZstd}};
  EXPECT_THAT(Table::create(options, pixel_signature(1)).error().message,
              HasSubstr("compression names a column 'pixel' that is not there"));
  EXPECT_EQ(compression_of("zstd"), Compression::kZstd);
  EXPECT_EQ(compression_of("gzip"), std::nullopt);
}

}  // namespace
}  // namespace troupe::replay
