// 16-bit floats to f32 and back, to nearest even: what arithmetic on compressed gradients needs.
// Pure functions; any thread.
#pragma once

#include <bit>
#include <cstdint>
#if defined(__F16C__)
#include <immintrin.h>
#endif

namespace troupe::learners {

struct Bf16 {
  std::uint16_t bits = 0;
  Bf16() = default;
  explicit Bf16(float value) {
    const auto word = std::bit_cast<std::uint32_t>(value);
    if ((word & 0x7fffffffU) > 0x7f800000U)
      bits = static_cast<std::uint16_t>((word >> 16) | 0x40U);  // NaN stays one
    else
      bits = static_cast<std::uint16_t>((word + 0x7fffU + ((word >> 16) & 1U)) >> 16);
  }
  explicit operator float() const {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
  }
};

// IEEE 754 binary16.
struct F16 {
  std::uint16_t bits = 0;
  F16() = default;
#if defined(__F16C__)
  explicit F16(float value) : bits(_cvtss_sh(value, _MM_FROUND_TO_NEAREST_INT)) {}
  explicit operator float() const { return _cvtsh_ss(bits); }
#else
  // Rounds by letting the adder of a float do it: 2^112 and 2^-112 move between the exponent
  // ranges.
  explicit F16(float value) {
    const auto word = std::bit_cast<std::uint32_t>(value);
    const auto sign = static_cast<std::uint16_t>((word >> 16) & 0x8000U);
    const std::uint32_t size = word & 0x7fffffffU;
    if (size > 0x7f800000U) {
      bits = static_cast<std::uint16_t>(sign | 0x7e00U);
    } else if (size >= 0x477ff000U) {  // rounds to 65536 or more
      bits = static_cast<std::uint16_t>(sign | 0x7c00U);
    } else if (size < 0x38800000U) {  // below the smallest normal number, 2^-14
      bits = static_cast<std::uint16_t>(
          sign | (std::bit_cast<std::uint32_t>(std::bit_cast<float>(size) + 0.5F) - 0x3f000000U));
    } else {
      const std::uint32_t rounded = size + 0xfffU + ((size >> 13) & 1U);
      bits = static_cast<std::uint16_t>(sign | ((rounded - 0x38000000U) >> 13));
    }
  }
  explicit operator float() const {
    const std::uint32_t sign = (bits & 0x8000U) << 16, size = bits & 0x7fffU;
    if (size >= 0x7c00U) return std::bit_cast<float>(sign | 0x7f800000U | ((size & 0x3ffU) << 13));
    return std::bit_cast<float>(
        sign | std::bit_cast<std::uint32_t>(std::bit_cast<float>(size << 13) * 0x1p112F));
  }
#endif
};

}  // namespace troupe::learners
