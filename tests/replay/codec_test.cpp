// Chunks survive the codec bit for bit; nothing else does.
#include "replay/codec.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "replay/checksum.hpp"
#include "tests/replay/support.hpp"

namespace troupe::replay {
namespace {

using namespace testing;
using ::testing::HasSubstr;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

ChunkPtr small_chunk() {
  return make_chunk({.worker = 3,
                     .incarnation = 2,
                     .sequence = 41,
                     .environment = 1,
                     .episode = 9,
                     .first_step = 4,
                     .steps = 2,
                     .end = EpisodeEnd::kTruncated,
                     .parameter_version = 17,
                     .learner_epoch = 5},
                    [](std::uint32_t t) { return 0.5 * t; });
}

// Overwrites a number and repairs the checksum, as a peer with a bug would send it.
template <class T>
std::vector<std::uint8_t> forged(std::vector<std::uint8_t> bytes, std::size_t offset, T value) {
  std::memcpy(bytes.data() + offset, &value, sizeof value);
  const std::uint32_t sum = crc32c(std::span<const std::uint8_t>(bytes).first(bytes.size() - 4));
  std::memcpy(bytes.data() + bytes.size() - 4, &sum, 4);
  return bytes;
}

TEST(Checksum, MatchesTheCheckValueOfTheStandard) {
  // CRC-32C of the nine digits: 0xe3069283 (RFC 3720 and the catalogue of parametrised CRCs).
  const std::string digits = "123456789";
  const auto* data = reinterpret_cast<const std::uint8_t*>(digits.data());
  EXPECT_EQ(crc32c({data, 9}), 0xe3069283U);
  EXPECT_EQ(crc32c({data + 4, 5}, crc32c({data, 4})), 0xe3069283U);
}

TEST(Codec, ReturnsTheChunkBitForBit) {
  const auto chunk = small_chunk();
  const auto bytes = encode(*chunk, small_signature());
  EXPECT_EQ(bytes.size(), encoded_bytes(chunk->header, small_signature()));
  const auto back = decode(bytes, small_signature());
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ((*back)->header, chunk->header);
  EXPECT_EQ((*back)->observation, chunk->observation);
  EXPECT_EQ((*back)->step, chunk->step);
  EXPECT_EQ((*back)->reward, chunk->reward);
}

TEST(Codec, KeepsPixelsAndDiscreteActions) {
  const Signature signature{.observation = {{"pixels", DType::kU8, {3, 2, 2}}},
                            .step = {{"action", DType::kI32, {}}},
                            .spec_hash = 5};
  Chunk chunk;
  chunk.header = {.steps = 2, .spec_hash = 5};
  chunk.observation = {std::vector<std::uint8_t>(24, 200)};
  chunk.step = {{1, 0, 0, 0, 2, 0, 0, 0}};
  chunk.reward = {1, 2};
  const auto back = decode(encode(chunk, signature), signature);
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ((*back)->observation, chunk.observation);
  EXPECT_EQ((*back)->step, chunk.step);
}

TEST(Codec, RefusesEveryTruncation) {
  const auto bytes = encode(*small_chunk(), small_signature());
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const auto result = decode(std::span<const std::uint8_t>(bytes).first(size), small_signature());
    ASSERT_FALSE(result) << "cut to " << size;
    EXPECT_EQ(result.error().code, ErrorCode::kCorrupt);
    EXPECT_FALSE(result.error().message.empty());
  }
}

TEST(Codec, RefusesEverySingleFlippedBit) {
  auto bytes = encode(*small_chunk(), small_signature());
  for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    bytes[bit / 8] ^= static_cast<std::uint8_t>(1 << bit % 8);
    const auto result = decode(bytes, small_signature());
    ASSERT_FALSE(result) << "bit " << bit;
    EXPECT_EQ(result.error().code, ErrorCode::kCorrupt);
    bytes[bit / 8] ^= static_cast<std::uint8_t>(1 << bit % 8);
  }
}

TEST(Codec, SaysWhatIsWrong) {
  const auto bytes = encode(*small_chunk(), small_signature());
  const auto message = [&](const std::vector<std::uint8_t>& changed) {
    const auto result = decode(changed, small_signature());
    return result ? std::string() : result.error().message;
  };
  EXPECT_THAT(message(forged<std::uint32_t>(bytes, 0, 1)), HasSubstr("magic"));
  EXPECT_THAT(message(forged<std::uint32_t>(bytes, 4, 2)), HasSubstr("format version 2"));
  EXPECT_THAT(message(forged<std::uint64_t>(bytes, 16, 78)), HasSubstr("spec hash 78"));
  auto longer = bytes;
  longer.push_back(0);
  EXPECT_THAT(message(longer), HasSubstr("bytes"));
}

TEST(Codec, RefusesForgedSizesBeforeAllocating) {
  const auto bytes = encode(*small_chunk(), small_signature());
  constexpr std::size_t kSteps = 24 + 4 + 4 + 8 + 4 + 8 + 4;
  for (const std::uint32_t steps : {0U, 1U, 3U, 1U << 20, 0xffffffffU})
    EXPECT_FALSE(decode(forged(bytes, kSteps, steps), small_signature())) << steps;
  EXPECT_FALSE(decode(forged<std::uint32_t>(bytes, kSteps - 4, 0xffffffffU), small_signature()));
  EXPECT_FALSE(decode(forged<std::uint8_t>(bytes, kSteps + 4, 3), small_signature()));
  EXPECT_FALSE(decode(bytes, small_signature(), {.max_bytes = bytes.size() - 1}));
}

TEST(Codec, RefusesAChunkOfAnotherSignature) {
  const auto bytes = encode(*small_chunk(), small_signature());
  Signature other = small_signature();
  other.observation[0].name = "position";
  EXPECT_THAT(decode(bytes, other).error().message, HasSubstr("position"));
  other = small_signature();
  other.step[0].shape = {2};
  EXPECT_THAT(decode(bytes, other).error().message, HasSubstr("action"));
  other = small_signature();
  other.step.push_back({"extra", DType::kF32, {}});
  EXPECT_FALSE(decode(bytes, other));
}

TEST(CheckShape, NamesTheColumnThatDoesNotFit) {
  auto chunk = *small_chunk();
  EXPECT_TRUE(check_shape(chunk, small_signature()));
  chunk.observation[0].resize(8);
  EXPECT_THAT(check_shape(chunk, small_signature()).error().message, HasSubstr("'observation'"));
  chunk = *small_chunk();
  chunk.reward.pop_back();
  EXPECT_THAT(check_shape(chunk, small_signature()).error().message, HasSubstr("rewards"));
  chunk = *small_chunk();
  chunk.step.clear();
  EXPECT_FALSE(check_shape(chunk, small_signature()));
  chunk = *small_chunk();
  EXPECT_FALSE(check_shape(chunk, small_signature(), {.max_steps = 1}));
}

TEST(CheckFinite, FindsABadNumberInAnyFloatColumnAndNamesItsStep) {
  for (const float bad : {kNan, kInfinity, -kInfinity}) {
    auto chunk = *small_chunk();
    EXPECT_TRUE(check_finite(chunk, small_signature()));
    chunk.reward[1] = bad;
    auto result = check_finite(chunk, small_signature());
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, ErrorCode::kNotFinite);
    EXPECT_THAT(result.error().message, HasSubstr("'reward' at step 5"));

    chunk = *small_chunk();
    std::memcpy(chunk.observation[0].data() + 5 * sizeof(float), &bad, sizeof bad);
    EXPECT_THAT(check_finite(chunk, small_signature()).error().message,
                HasSubstr("'observation' at step 6"));

    chunk = *small_chunk();
    std::memcpy(chunk.step[0].data(), &bad, sizeof bad);
    EXPECT_THAT(check_finite(chunk, small_signature()).error().message,
                HasSubstr("'action' at step 4"));
  }
}

TEST(SignatureOf, JoinsFloatColumnsAndKeepsPixels) {
  EnvSpec spec;
  spec.observations = {{"position", DType::kF32, {3}},
                       {"pixels", DType::kU8, {4, 4}},
                       {"velocity", DType::kF32, {2}}};
  spec.action.low = {-1, -1};
  spec.action.high = {1, 1};
  const Signature signature = signature_of(spec);
  ASSERT_EQ(signature.observation.size(), 2U);
  EXPECT_EQ(signature.observation[0], (Column{"observation", DType::kF32, {5}}));
  EXPECT_EQ(signature.observation[1], (Column{"pixels", DType::kU8, {4, 4}}));
  EXPECT_EQ(signature.step[0], (Column{"action", DType::kF32, {2}}));
  EXPECT_EQ(signature.spec_hash, hash_of(spec));
  spec.action = ActionSpec{.discrete = true, .choices = 4, .low = {}, .high = {}};
  EXPECT_EQ(signature_of(spec).step[0], (Column{"action", DType::kI32, {}}));
}

}  // namespace
}  // namespace troupe::replay
