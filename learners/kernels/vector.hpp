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

// Lane by lane: b where the comparison is false or a is NaN.
inline Vector smaller(Vector a, Vector b) { return a < b ? a : b; }
inline Vector larger(Vector a, Vector b) { return a > b ? a : b; }

inline float sum(Vector value) {
  // Pairwise, in a fixed order.
  float lanes[kLanes];
  store(lanes, value);
  for (int width = kLanes / 2; width > 0; width /= 2)
    for (int i = 0; i < width; ++i) lanes[i] += lanes[i + width];
  return lanes[0];
}

namespace detail {

// x = n ln 2 + r with |r| <= ln 2 / 2: gives 2^n and e^r - 1. For x in [-87, 88].
struct ExpParts {
  Vector scale, fraction;
};

inline ExpParts exp_parts(Vector x) {
  // Adding 1.5 * 2^23 rounds to the nearest integer, which the low mantissa bits then hold.
  const Vector kRound = broadcast(12582912.0F);
  const Vector shifted = multiply_add(x, broadcast(1.44269504F), kRound);
  const Vector n = shifted - kRound;
  Vector r = multiply_add(n, broadcast(-0.693145752F), x);
  r = multiply_add(n, broadcast(-1.42860677e-6F), r);
  // The Taylor series to r^7: its remainder, r^8 / 8!, is below 2e-8 of r.
  Vector p = broadcast(1.0F / 5040);
  p = multiply_add(p, r, broadcast(1.0F / 720));
  p = multiply_add(p, r, broadcast(1.0F / 120));
  p = multiply_add(p, r, broadcast(1.0F / 24));
  p = multiply_add(p, r, broadcast(1.0F / 6));
  p = multiply_add(p, r, broadcast(0.5F));
  p = multiply_add(p, r * r, r);
  IntVector bits;
  std::memcpy(&bits, &shifted, sizeof(bits));
  bits = (bits << 23) + (127 << 23);
  Vector scale;
  std::memcpy(&scale, &bits, sizeof(scale));
  return {scale, p};
}

}  // namespace detail

// e^x, relative error below 2e-7 for x in [-87, 88]; smaller x give e^-87, larger ones e^88. NaN
// stays NaN.
inline Vector exp(Vector x) {
  x = x < -87.0F ? broadcast(-87.0F) : x;
  x = x > 88.0F ? broadcast(88.0F) : x;
  const auto [scale, fraction] = detail::exp_parts(x);
  return multiply_add(scale, fraction, scale);
}

// e^x - 1 for x <= 0, relative error below 3e-7 down to the smallest normal numbers. NaN stays NaN.
inline Vector exp_minus_one(Vector x) {
  x = x < -87.0F ? broadcast(-87.0F) : x;
  const auto [scale, fraction] = detail::exp_parts(x);
  return multiply_add(scale, fraction, scale - 1.0F);
}

// Exponential linear unit with alpha 1 (Clevert et al. 2015): x above 0, e^x - 1 below.
inline Vector elu(Vector x) { return x > 0.0F ? x : exp_minus_one(x > 0.0F ? Vector{} : x); }

// Relative error below 5e-7. NaN stays NaN.
inline Vector tanh(Vector x) {
  const Vector magnitude = x < 0.0F ? -x : x;
  const Vector m = exp_minus_one(-2.0F * magnitude);
  const Vector t = -m / (m + 2.0F);
  return x < 0.0F ? -t : t;
}

// Derivatives with respect to the argument, from the function's value.
inline Vector elu_slope(Vector value) { return value > 0.0F ? broadcast(1.0F) : value + 1.0F; }
inline Vector tanh_slope(Vector value) { return 1.0F - value * value; }

}  // namespace troupe::learners::kernels
