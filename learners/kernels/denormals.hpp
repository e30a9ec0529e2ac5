// Arithmetic on denormal floats takes the slow path of many processors, and training makes them:
// probabilities far from the mode, moments of gradients that have died. While a FlushDenormals
// lives, its thread reads and writes them as 0 (x86; elsewhere nothing changes). Values below
// 1.2e-38 carry no information here.
#pragma once

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace troupe::learners::kernels {

class FlushDenormals {
 public:
#if defined(__SSE2__)
  FlushDenormals() : saved_(_mm_getcsr()) { _mm_setcsr(saved_ | kFlushToZero | kDenormalsAreZero); }
  ~FlushDenormals() { _mm_setcsr(saved_); }
#else
  FlushDenormals() {}
  ~FlushDenormals() {}
#endif
  FlushDenormals(const FlushDenormals&) = delete;
  FlushDenormals& operator=(const FlushDenormals&) = delete;

#if defined(__SSE2__)
 private:
  static constexpr unsigned kFlushToZero = 1U << 15, kDenormalsAreZero = 1U << 6;
  unsigned saved_;
#endif
};

}  // namespace troupe::learners::kernels
