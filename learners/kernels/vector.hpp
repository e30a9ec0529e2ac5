// Short float vectors of the machine the code is compiled for, and the elementary functions the
// learner's kernels need on them. Compiler vector extensions, so that one source serves SSE, AVX2,
// AVX-512 and NEON; only the fused multiply-add is an intrinsic, because its rounding must not
// depend on the optimiser. Pure functions; any thread.
#pragma once

#include <cstdint>
#include <cstring>
#if defined(__FMA__)
#include <immintrin.h>
#endif

namespace troupe::learners::kernels {

#if defined(__AVX512F__)
inline constexpr int kLanes = 16;
#elif defined(__AVX__)
inline constexpr int kLanes = 8;
#else
inline constexpr int kLanes = 4;
#endif

using Vector = float __attribute__((vector_size(kLanes * 4)));
using IntVector = std::int32_t __attribute__((vector_size(kLanes * 4)));

// No alignment is asked for.
inline Vector load(const float* from) {
  Vector value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}

inline void store(float* to, Vector value) { std::memcpy(to, &value, sizeof(value)); }

// x - 0 keeps every bit of x, the sign of zero and NaN included, and compiles to one broadcast.
inline Vector broadcast(float value) { return value - Vector{}; }

// a * b + c, rounded once where the machine can.
inline Vector multiply_add(Vector a, Vector b, Vector c) {
#if defined(__AVX512F__)
  return _mm512_fmadd_ps(a, b, c);
#elif defined(__FMA__)
  return _mm256_fmadd_ps(a, b, c);
#else
  return a * b + c;
#endif
}

// Lane by lane: b where the comparison is false or one is NaN. Intrinsics where compilers make two
// operations of it; masked by all ones because GCC 12 warns of the plain ones' own headers.
inline Vector smaller(Vector a, Vector b) {
#if defined(__AVX512F__)
  return _mm512_maskz_min_ps(0xFFFF, a, b);
#else
  return a < b ? a : b;
#endif
}
inline Vector larger(Vector a, Vector b) {
#if defined(__AVX512F__)
  return _mm512_maskz_max_ps(0xFFFF, a, b);
#else
  return a > b ? a : b;
#endif
}

inline float sum(Vector value) {
  // Pairwise, in a fixed order.
  float lanes[kLanes];
  store(lanes, value);
  for (int width = kLanes / 2; width > 0; width /= 2)
    for (int i = 0; i < width; ++i) lanes[i] += lanes[i + width];
  return lanes[0];
}

namespace detail {

// x = n ln 2 + r with |r| <= ln 2 / 2: gives 2^n and e^r - 1. For x in [-87, 88]. Exact: r keeps
// its digits however large n is; otherwise it is off by 2e-9 n, which e^x - 1 of x <= 0 does not
// notice.
struct ExpParts {
  Vector scale, fraction;
};

template <bool Exact>
inline ExpParts exp_parts(Vector x) {
  // Adding 1.5 * 2^23 rounds to the nearest integer, which the low mantissa bits then hold; 127
  // more make it a float's exponent.
  const Vector kRound = broadcast(12582912.0F + 127);
  const Vector shifted = multiply_add(x, broadcast(1.44269504F), kRound);
  const Vector n = shifted - kRound;
  Vector r;
  if constexpr (Exact) {
    r = multiply_add(n, broadcast(-0.693145752F), x);
    r = multiply_add(n, broadcast(-1.42860677e-6F), r);
  } else {
    r = multiply_add(n, broadcast(-0.693147181F), x);
  }
  // (e^r - 1 - r) / r^2 interpolated at five Chebyshev nodes: e^r - 1 to 2.2e-8 of itself.
  Vector p = broadcast(0.00139268138F);
  p = multiply_add(p, r, broadcast(0.00836368371F));
  p = multiply_add(p, r, broadcast(0.0416665524F));
  p = multiply_add(p, r, broadcast(0.166665733F));
  p = multiply_add(p, r, broadcast(0.5F));
  p = multiply_add(p, r * r, r);
  IntVector bits;
  std::memcpy(&bits, &shifted, sizeof(bits));
  bits <<= 23;
  Vector scale;
  std::memcpy(&scale, &bits, sizeof(scale));
  return {scale, p};
}

}  // namespace detail

// e^x, relative error below 2e-7 for x in [-87, 88]; smaller x give e^-87, larger ones e^88. NaN
// stays NaN.
inline Vector exp(Vector x) {
  x = smaller(broadcast(88.0F), larger(broadcast(-87.0F), x));
  const auto [scale, fraction] = detail::exp_parts<true>(x);
  return multiply_add(scale, fraction, scale);
}

// e^x - 1 for x <= 0, relative error below 3e-7 down to the smallest normal numbers. NaN stays NaN.
inline Vector exp_minus_one(Vector x) {
  const auto [scale, fraction] = detail::exp_parts<false>(larger(broadcast(-87.0F), x));
  return multiply_add(scale, fraction, scale - 1.0F);
}

// Exponential linear unit with alpha 1 (Clevert et al. 2015): x above 0, e^x - 1, which is never
// less than x, below. NaN stays NaN.
inline Vector elu(Vector x) { return larger(exp_minus_one(smaller(Vector{}, x)), x); }

// Relative error below 5e-7. NaN stays NaN.
inline Vector tanh(Vector x) {
  const Vector m = exp_minus_one(smaller(x, -x) * 2.0F);
  const Vector t = m / (m + 2.0F);
  return x < 0.0F ? t : -t;
}

// Derivatives with respect to the argument, from the function's value.
inline Vector elu_slope(Vector value) { return smaller(Vector{}, value) + 1.0F; }
inline Vector tanh_slope(Vector value) { return 1.0F - value * value; }

}  // namespace troupe::learners::kernels
