// Pictures for the tests of packed columns and frame stacks: small, compressible, and every one
// says which episode and step it is.
#pragma once

#include <memory>
#include <vector>

#include "envs/spec/random.hpp"
#include "replay/table.hpp"
#include "tests/replay/support.hpp"

namespace troupe::replay::testing {

inline constexpr std::size_t kPictureBytes = 1200;  // 20 x 20 x 3

// "pixels" u8 [20, 20, 3] with a stack of `stack`, "state" f32 [2], and "action" f32 [1].
inline Signature pixel_signature(std::uint32_t stack) {
  Signature signature;
  signature.observation = {{"pixels", DType::kU8, {20, 20, 3}}, {"state", DType::kF32, {2}}};
  signature.step = {{"action", DType::kF32, {1}}};
  signature.spec_hash = 77;
  signature.frame_stack = {stack, 1};
  return signature;
}

// A band that moves over a ground, with the episode and the step in the first bytes.
inline std::vector<std::uint8_t> picture(std::uint64_t episode, std::uint32_t step) {
  std::vector<std::uint8_t> bytes(kPictureBytes);
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<std::uint8_t>((i + 7 * step) / 60 % 5 * 40 + i % 3);
  bytes[0] = static_cast<std::uint8_t>(episode);
  bytes[1] = static_cast<std::uint8_t>(step);
  bytes[2] = static_cast<std::uint8_t>(step >> 8);
  return bytes;
}

// The steps that the header says, of the episode that it says.
inline std::shared_ptr<Chunk> pixel_chunk(ChunkHeader header) {
  auto chunk = make_chunk(header);
  std::vector<std::uint8_t> pixels;
  for (std::uint32_t row = 0; row < header.observation_rows(); ++row) {
    const auto one = picture(header.episode, header.first_step + row);
    pixels.insert(pixels.end(), one.begin(), one.end());
  }
  chunk->observation.insert(chunk->observation.begin(), std::move(pixels));
  return chunk;
}

}  // namespace troupe::replay::testing
