// Copies past the caches, alone and in batches that are large enough to be written so.
#include "replay/stream_copy.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "replay/gather.hpp"
#include "tests/replay/pixel_support.hpp"

namespace troupe::replay {
namespace {

using namespace testing;

TEST(StreamCopy, WritesItsBytesAndNoOthersWhereverTheyLie) {
  constexpr std::size_t kRoom = 1024;
  std::vector<std::uint8_t> from(kRoom);
  for (std::size_t i = 0; i < kRoom; ++i) from[i] = static_cast<std::uint8_t>(1 + i * 7 % 250);
  for (std::size_t bytes : {0, 1, 31, 32, 33, 63, 64, 65, 127, 128, 129, 300, 511, 700})
    for (std::size_t source : {0, 1, 8, 33})
      for (std::size_t target = 0; target < 66; ++target) {
        std::vector<std::uint8_t> to(kRoom), expected(kRoom);
        std::copy_n(from.begin() + static_cast<std::ptrdiff_t>(source), bytes,
                    expected.begin() + static_cast<std::ptrdiff_t>(target));
        stream_copy(to.data() + target, from.data() + source, bytes);
        stream_fence();
        ASSERT_EQ(to, expected) << bytes << " bytes from " << source << " to " << target;
      }
}

// The picture in this row must be the whole of the one that its first bytes name.
std::uint32_t step_of(const std::uint8_t* row) {
  const std::uint32_t step = row[1] + 256U * row[2];
  const auto whole = picture(row[0], step);
  EXPECT_TRUE(std::equal(whole.begin(), whole.end(), row)) << "step " << step;
  return step;
}

struct LargeBatch {
  std::unique_ptr<Table> table;
  std::unique_ptr<Batch> batch;
};

// Of more bytes than any machine's caches are taken to have.
LargeBatch large_batch(TableOptions options) {
  constexpr std::size_t kBytes = std::size_t{17} << 20;
  options.compression = {{"pixels", Compression::kNone}};
  LargeBatch made{Table::create(options, pixel_signature(1)).value(), nullptr};
  for (std::uint32_t i = 0; i < 20; ++i)
    EXPECT_EQ(made.table
                  ->try_insert(
                      pixel_chunk({.sequence = i, .episode = 5, .first_step = 4 * i, .steps = 4}))
                  .kind,
              InsertOutcome::Kind::kAccepted);
  std::size_t row = 0;
  for (const Column& column : made.table->batch_columns()) row += column.bytes();
  const std::size_t items = kBytes / row + 1;
  made.batch =
      std::make_unique<Batch>(made.table->batch_columns(), static_cast<std::int64_t>(items));
  EXPECT_TRUE(exceeds_caches(*made.batch));
  EXPECT_TRUE(made.table->gather(made.table->try_sample(items).value(), *made.batch));
  return made;
}

TEST(StreamCopy, ABatchOfTransitionsLargerThanTheCachesHoldsEveryRow) {
  auto made = large_batch(small_options(3));
  const Batch& batch = *made.batch;
  const auto now = batch.bytes(batch.find("pixels")), then = batch.bytes(batch.find("next_pixels"));
  for (std::size_t at = 0; at < now.size(); at += kPictureBytes)
    ASSERT_EQ(step_of(now.data() + at) + 3, step_of(then.data() + at));
}

TEST(StreamCopy, ABatchOfSequencesLargerThanTheCachesHoldsEveryRow) {
  TableOptions options = small_options(1);
  options.items.kind = ItemShape::Kind::kSequence;
  options.items.length = 6;
  options.items.period = 1;
  auto made = large_batch(options);
  const auto rows = made.batch->bytes(made.batch->find("pixels"));
  const std::size_t sequence = 7 * kPictureBytes;
  for (std::size_t at = 0; at < rows.size(); at += sequence)
    for (std::uint32_t t = 1; t < 7; ++t)
      ASSERT_EQ(step_of(rows.data() + at) + t, step_of(rows.data() + at + t * kPictureBytes));
}

}  // namespace
}  // namespace troupe::replay
