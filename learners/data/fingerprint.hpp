// A digest over names and numbers, for DataSet::fingerprint.
#pragma once

#include <cstdint>
#include <string_view>

namespace troupe::learners::data {

// FNV-1a, 64 bits.
class Fingerprint {
 public:
  void add(std::string_view text) {
    for (const char c : text) byte(static_cast<std::uint8_t>(c));
    byte(0);
  }
  void add(std::uint64_t number) {
    for (int i = 0; i < 8; ++i) byte(static_cast<std::uint8_t>(number >> (8 * i)));
  }
  std::uint64_t value() const { return hash_; }

 private:
  void byte(std::uint8_t value) { hash_ = (hash_ ^ value) * 0x100000001b3U; }
  std::uint64_t hash_ = 0xcbf29ce484222325U;
};

}  // namespace troupe::learners::data
