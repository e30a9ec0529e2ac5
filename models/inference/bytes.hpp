// Little-endian writer and bounds-checked reader behind the encodings of this folder. Plain values;
// one owner each. Written by hand because a reader must know how much is left before anything is
// allocated, which archive libraries do not offer.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace troupe::models {

static_assert(std::endian::native == std::endian::little, "the encodings are little-endian");

class ByteWriter {
 public:
  template <class T>
  requires std::is_arithmetic_v<T>
  void put(T value) { append(&value, sizeof(T)); }
  void put(std::string_view text) {
    put(static_cast<std::uint32_t>(text.size()));
    append(text.data(), text.size());
  }
  template <class T>
  void put_values(std::span<const T> values) {
    append(values.data(), values.size_bytes());
  }
  std::vector<std::uint8_t>& bytes() { return bytes_; }

 private:
  void append(const void* data, std::size_t size) {
    if (size == 0) return;
    // Not insert(): GCC 12 warns of an overflow that it imagines.
    const std::size_t end = bytes_.size();
    bytes_.resize(end + size);
    std::memcpy(bytes_.data() + end, data, size);
  }
  std::vector<std::uint8_t> bytes_;
};

// Every take returns false, and the reader stays failed, when the bytes do not suffice.
class ByteReader {
 public:
  explicit ByteReader(std::span<const std::uint8_t> bytes) : rest_(bytes) {}

  template <class T>
  requires std::is_arithmetic_v<T>
  bool take(T& value) {
    if (!claim(sizeof(T))) return false;
    std::memcpy(&value, rest_.data(), sizeof(T));
    rest_ = rest_.subspan(sizeof(T));
    return true;
  }
  bool take(std::string& text) {
    std::uint32_t size = 0;
    if (!take(size) || !claim(size)) return false;
    text.assign(reinterpret_cast<const char*>(rest_.data()), size);
    rest_ = rest_.subspan(size);
    return true;
  }
  // `count` values; checked before the vector is sized.
  template <class T>
  bool take_values(std::uint64_t count, std::vector<T>& values) {
    if (count > rest_.size() / sizeof(T)) return failed_ = true, false;
    values.resize(count);
    std::memcpy(values.data(), rest_.data(), count * sizeof(T));
    rest_ = rest_.subspan(count * sizeof(T));
    return true;
  }
  std::size_t remaining() const { return rest_.size(); }
  bool complete() const { return !failed_ && rest_.empty(); }

 private:
  bool claim(std::size_t size) {
    if (failed_ || size > rest_.size()) failed_ = true;
    return !failed_;
  }
  std::span<const std::uint8_t> rest_;
  bool failed_ = false;
};

}  // namespace troupe::models
