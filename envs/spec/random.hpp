// Random numbers whose whole state is 32 bytes, and named streams from one run seed. One Random
// belongs to one owner; not thread-safe. Written by hand because checkpoints save it bit for bit
// and the standard distributions keep hidden state and differ between libraries (xoshiro256++ 1.0
// and splitmix64, Blackman and Vigna, prng.di.unimi.it).
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <string_view>

namespace troupe {

inline std::uint64_t splitmix64(std::uint64_t& state) {
  std::uint64_t z = (state += 0x9e3779b97f4a7c15ULL);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

// Seed of the stream (purpose, index, subindex) of a run. Every seed is a seed, 0 too. Adding an
// index never changes another's stream.
inline std::uint64_t stream_seed(std::uint64_t run_seed, std::string_view purpose,
                                 std::uint64_t index = 0, std::uint64_t subindex = 0) {
  std::uint64_t state = run_seed;
  std::uint64_t hash = splitmix64(state);
  for (const char c : purpose) {
    state = hash ^ static_cast<unsigned char>(c);
    hash = splitmix64(state);
  }
  state = hash ^ index;
  hash = splitmix64(state);
  state = hash ^ subindex;
  return splitmix64(state);
}

class Random {
 public:
  using State = std::array<std::uint64_t, 4>;
  // UniformRandomBitGenerator, so that std::shuffle works.
  using result_type = std::uint64_t;

  explicit Random(std::uint64_t seed = 0) {
    for (std::uint64_t& word : state_) word = splitmix64(seed);
  }

  static constexpr result_type min() { return 0; }
  static constexpr result_type max() { return ~result_type{0}; }

  result_type operator()() {
    const std::uint64_t result = rotate(state_[0] + state_[3], 23) + state_[0];
    const std::uint64_t t = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= t;
    state_[3] = rotate(state_[3], 45);
    return result;
  }

  // Uniform in [0, 1), 53 bits.
  double uniform() { return static_cast<double>((*this)() >> 11) * 0x1.0p-53; }
  double uniform(double low, double high) { return low + (high - low) * uniform(); }

  // Uniform integer in [0, n), n > 0, without modulo bias (Lemire's multiply and reject).
  std::uint64_t below(std::uint64_t n) {
    __extension__ using u128 = unsigned __int128;
    u128 product = static_cast<u128>((*this)()) * n;
    if (static_cast<std::uint64_t>(product) < n) {
      const std::uint64_t threshold = (0 - n) % n;
      while (static_cast<std::uint64_t>(product) < threshold)
        product = static_cast<u128>((*this)()) * n;
    }
    return static_cast<std::uint64_t>(product >> 64);
  }

  // Standard normal by Box-Muller; the second variate is thrown away so that no state hides.
  double normal() {
    const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform()));
    return radius * std::cos(2.0 * std::numbers::pi * uniform());
  }

  const State& state() const { return state_; }
  void set_state(const State& state) { state_ = state; }

 private:
  static std::uint64_t rotate(std::uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }
  State state_{};
};

}  // namespace troupe
