// Finds NaN and infinity in a chunk's floats by their exponent bits, so that no compiler flag for
// fast arithmetic can remove the check and the loop vectorises.
#include <cstring>
#include <span>
#include <string>

#include "replay/codec.hpp"

namespace troupe::replay {
namespace {

template <class Word, Word kExponent>
bool all_finite(const std::uint8_t* data, std::size_t count) {
  Word bad = 0;
  for (std::size_t i = 0; i < count; ++i) {
    Word bits;
    std::memcpy(&bits, data + i * sizeof(Word), sizeof(Word));
    bad |= static_cast<Word>((bits & kExponent) == kExponent);
  }
  return bad == 0;
}

bool is_finite(DType type, const std::uint8_t* data, std::size_t bytes) {
  if (type == DType::kF32) return all_finite<std::uint32_t, 0x7f800000U>(data, bytes / 4);
  if (type == DType::kF64) return all_finite<std::uint64_t, 0x7ff0000000000000ULL>(data, bytes / 8);
  return true;
}

// Which row of a column that is known to hold a bad number, for the message.
std::size_t first_bad_row(const Column& column, std::span<const std::uint8_t> data) {
  const std::size_t row = column.bytes();
  std::size_t index = 0;
  while ((index + 1) * row <= data.size() &&
         is_finite(column.dtype, data.data() + index * row, row))
    ++index;
  return index;
}

Result<void> check(const Chunk& chunk, const Column& column, std::span<const std::uint8_t> data) {
  if (is_finite(column.dtype, data.data(), data.size())) return {};
  return fail(ErrorCode::kNotFinite,
              describe(chunk.header) + " has NaN or infinity in column '" + column.name +
                  "' at step " +
                  std::to_string(chunk.header.first_step + first_bad_row(column, data)));
}

}  // namespace

Result<void> check_finite(const Chunk& chunk, const Signature& signature) {
  for (std::size_t i = 0; i < signature.observation.size(); ++i)
    if (auto good = check(chunk, signature.observation[i], chunk.observation[i]); !good)
      return good;
  for (std::size_t i = 0; i < signature.step.size(); ++i)
    if (auto good = check(chunk, signature.step[i], chunk.step[i]); !good) return good;
  static const Column kReward{"reward", DType::kF32, {}};
  const auto* reward = reinterpret_cast<const std::uint8_t*>(chunk.reward.data());
  return check(chunk, kReward, {reward, chunk.reward.size() * sizeof(float)});
}

}  // namespace troupe::replay
