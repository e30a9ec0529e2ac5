// By AVX's non-temporal stores, a line or half of one at a time.
#include "replay/stream_copy.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstring>

#if defined(__AVX__)
#include <immintrin.h>
#endif

namespace troupe::replay {

#if defined(__AVX__)

void stream_copy(std::uint8_t* to, const std::uint8_t* from, std::size_t bytes) {
  constexpr std::size_t kStore = 32, kLine = 64;
  const std::size_t head = (kLine - reinterpret_cast<std::uintptr_t>(to) % kLine) % kLine;
  if (bytes < head + kLine) {
    std::memcpy(to, from, bytes);
    return;
  }
  std::memcpy(to, from, head);
  std::size_t at = head;
#if defined(__AVX512F__)
  // The hardware's prefetching ends with each page, and the next one's address takes long to find.
  constexpr std::size_t kAhead = 48 * kLine;
  for (; at + kLine <= bytes; at += kLine) {
    __builtin_prefetch(from + at + kAhead);
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to + at), _mm512_loadu_si512(from + at));
  }
#endif
  for (; at + kLine <= bytes; at += kLine) {
    const auto low = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + at));
    const auto high = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + at + kStore));
    _mm256_stream_si256(reinterpret_cast<__m256i*>(to + at), low);
    _mm256_stream_si256(reinterpret_cast<__m256i*>(to + at + kStore), high);
  }
  std::memcpy(to + at, from + at, bytes - at);
}

void stream_fence() { _mm_sfence(); }

#else

void stream_copy(std::uint8_t* to, const std::uint8_t* from, std::size_t bytes) {
  std::memcpy(to, from, bytes);
}

void stream_fence() {}

#endif

bool exceeds_caches(std::size_t bytes) {
  // On a shared machine the last cache is larger than what one process may count on.
  static constexpr std::size_t kMost = std::size_t{16} << 20;
  static const std::size_t kLimit = [] {
    const long cache = ::sysconf(_SC_LEVEL3_CACHE_SIZE);  // 0 or less: unknown
    return cache > 0 ? std::min(static_cast<std::size_t>(cache) / 2, kMost) : kMost;
  }();
  return bytes >= kLimit;
}

}  // namespace troupe::replay
