// FNV-1a, 64 bits (http://www.isthe.com/chongo/tech/comp/fnv): for digests that different processes
// compare, where std::hash may differ. Not against intent. Written out because it is two lines.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace troupe {

class Fnv1a {
 public:
  // The bytes alone.
  void bytes(const void* data, std::size_t size) {
    const auto* from = static_cast<const unsigned char*>(data);
    for (std::size_t i = 0; i < size; ++i) byte(from[i]);
  }
  // A text with its end, so that "ab", "c" is not "a", "bc".
  void add(std::string_view text) {
    bytes(text.data(), text.size());
    byte(0);
  }
  // Little-endian, whatever the machine.
  void add(std::uint64_t number) {
    for (int shift = 0; shift < 64; shift += 8) byte(static_cast<unsigned char>(number >> shift));
  }
  std::uint64_t value() const { return hash_; }

 private:
  void byte(unsigned char value) { hash_ = (hash_ ^ value) * 0x100000001b3ULL; }
  std::uint64_t hash_ = 0xcbf29ce484222325ULL;
};

}  // namespace troupe
