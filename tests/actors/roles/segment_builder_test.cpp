// Chunks of one environment: sizes, ends, ages, and their bytes.
#include "actors/roles/segment_builder.hpp"

#include <gtest/gtest.h>

#include <cstring>

namespace troupe::actors {
namespace {

using std::chrono::milliseconds;
using Time = SegmentBuilder::Time;

const replay::Signature kSignature{
    {{"observation", DType::kF32, {2}}}, {{"action", DType::kF32, {1}}}, 77};
constexpr Time kNow{std::chrono::seconds{50}};

void add(SegmentBuilder& builder, float value, Time now = kNow) {
  const float observation[2] = {value, -value};
  builder.add(observation, {&value, 1}, value, 5, 1, now);
}

std::vector<float> floats(const std::vector<std::uint8_t>& bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

TEST(SegmentBuilder, ClosesAChunkWhenItIsFullAndContinuesTheEpisode) {
  SegmentBuilder builder(kSignature, 3, 2, 1, 2);
  add(builder, 1);
  EXPECT_FALSE(builder.take(kNow, milliseconds{50}));
  add(builder, 2);
  auto first = builder.take(kNow, milliseconds{50});
  ASSERT_TRUE(first);
  EXPECT_EQ(first->header.worker, 3U);
  EXPECT_EQ(first->header.incarnation, 2U);
  EXPECT_EQ(first->header.environment, 1U);
  EXPECT_EQ(first->header.spec_hash, 77U);
  EXPECT_EQ(first->header.first_step, 0U);
  EXPECT_EQ(first->header.steps, 2U);
  EXPECT_FALSE(first->header.ends());
  EXPECT_EQ(floats(first->observation[0]), (std::vector<float>{1, -1, 2, -2}));
  add(builder, 3);
  add(builder, 4);
  auto second = builder.take(kNow, milliseconds{50});
  ASSERT_TRUE(second);
  EXPECT_EQ(second->header.first_step, 2U);
  EXPECT_EQ(second->header.episode, 0U);
}

TEST(SegmentBuilder, EndsWithTheFinalObservationAsAnExtraRow) {
  SegmentBuilder builder(kSignature, 0, 1, 0, 10);
  add(builder, 1);
  const float final_observation[2] = {9, 8};
  builder.end(replay::EpisodeEnd::kTruncated, final_observation);
  auto chunk = builder.take(kNow, milliseconds{50});
  ASSERT_TRUE(chunk);
  EXPECT_EQ(chunk->header.end, replay::EpisodeEnd::kTruncated);
  EXPECT_EQ(chunk->header.observation_rows(), 2U);
  EXPECT_EQ(floats(chunk->observation[0]), (std::vector<float>{1, -1, 9, 8}));
  EXPECT_EQ(chunk->reward, std::vector<float>{1});
  add(builder, 2);
  const auto next = builder.take(kNow, milliseconds{0});
  ASSERT_TRUE(next);
  EXPECT_EQ(next->header.episode, 1U);
  EXPECT_EQ(next->header.first_step, 0U);
  EXPECT_EQ(next->header.end, replay::EpisodeEnd::kContinues);
}

TEST(SegmentBuilder, FlushesAnOldChunk) {
  SegmentBuilder builder(kSignature, 0, 1, 0, 10);
  add(builder, 1);
  EXPECT_FALSE(builder.take(kNow + milliseconds{49}, milliseconds{50}));
  EXPECT_TRUE(builder.take(kNow + milliseconds{50}, milliseconds{50}));
}

TEST(SegmentBuilder, DropsUnsentStepsOfAnAbandonedEpisode) {
  SegmentBuilder builder(kSignature, 0, 1, 0, 10);
  add(builder, 1);
  builder.abandon();
  EXPECT_FALSE(builder.take(kNow, milliseconds{0}));
  add(builder, 2);
  const auto chunk = builder.take(kNow, milliseconds{0});
  ASSERT_TRUE(chunk);
  EXPECT_EQ(chunk->header.episode, 1U);
  EXPECT_EQ(chunk->header.first_step, 0U);
}

TEST(SegmentBuilder, ContinuesASavedSegmentBitForBit) {
  SegmentBuilder builder(kSignature, 0, 1, 0, 3);
  for (const float value : {1.F, 2.F, 3.F, 4.F}) {
    add(builder, value);
    const bool taken = builder.take(kNow, milliseconds{50}).has_value();
    ASSERT_EQ(taken, value == 3);
  }
  std::vector<std::uint8_t> saved;
  builder.save(saved);
  SegmentBuilder restored(kSignature, 0, 1, 0, 3);
  ASSERT_TRUE(restored.load(saved));
  for (SegmentBuilder* each : {&builder, &restored}) {
    add(*each, 5);
    add(*each, 6);
  }
  const auto expected = builder.take(kNow, milliseconds{50}),
             got = restored.take(kNow, milliseconds{50});
  ASSERT_TRUE(expected && got);
  EXPECT_EQ(expected->header, got->header);
  EXPECT_EQ(expected->observation, got->observation);
  EXPECT_EQ(expected->step, got->step);
  EXPECT_EQ(expected->reward, got->reward);
}

TEST(SegmentBuilder, RefusesEveryTruncationOfItsState) {
  SegmentBuilder builder(kSignature, 0, 1, 0, 3);
  add(builder, 1);
  std::vector<std::uint8_t> saved;
  builder.save(saved);
  for (std::size_t size = 0; size < saved.size(); ++size) {
    SegmentBuilder restored(kSignature, 0, 1, 0, 3);
    EXPECT_FALSE(restored.load(std::span(saved.data(), size))) << size;
    EXPECT_EQ(restored.open_steps(), 0U);
  }
}

}  // namespace
}  // namespace troupe::actors
