// Little-endian writing and bounds-checked reading of byte strings, for the codec and checkpoints.
// By hand because cereal's binary archives allocate what a size field says before looking whether
// the bytes are there. Values of one owner; no locks.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace troupe::replay {

static_assert(std::endian::native == std::endian::little,
              "wire and file formats are little-endian");

class ByteWriter {
 public:
  // Appends to `out`, which must outlive the writer.
  explicit ByteWriter(std::vector<std::uint8_t>& out) : out_(out) {}

  template <class T>
  requires std::is_arithmetic_v<T>
  void put(T value) { bytes(&value, sizeof value); }
  void bytes(const void* data, std::size_t size);
  // u64 count, then the elements as they lie in memory.
  template <class T>
  requires std::is_trivially_copyable_v<T>
  void array(std::span<const T> values) {
    put(static_cast<std::uint64_t>(values.size()));
    bytes(values.data(), values.size_bytes());
  }
  void text(std::string_view value) { array(std::span<const char>(value.data(), value.size())); }

 private:
  std::vector<std::uint8_t>& out_;
};

// Every read says whether the bytes were there; after the first failure all further reads fail, so
// that a caller may read a whole record and ask ok() once.
class ByteReader {
 public:
  explicit ByteReader(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}

  template <class T>
  requires std::is_arithmetic_v<T>
  bool get(T& value) { return raw(&value, sizeof value); }
  // Reads a number; 0 when the bytes are not there.
  template <class T>
  T take() {
    T value{};
    get(value);
    return value;
  }
  bool raw(void* data, std::size_t size) {
    if (!ok_ || size > remaining()) return ok_ = false;
    if (size > 0) std::memcpy(data, bytes_.data() + position_, size);
    position_ += size;
    return true;
  }
  // The next `size` bytes, without a copy; empty when they are not there.
  std::span<const std::uint8_t> view(std::uint64_t size) {
    if (!ok_ || size > remaining()) {
      ok_ = false;
      return {};
    }
    const auto result = bytes_.subspan(position_, static_cast<std::size_t>(size));
    position_ += static_cast<std::size_t>(size);
    return result;
  }
  // The counterpart of ByteWriter::array; nothing is allocated unless all its bytes are there.
  template <class T>
  requires std::is_trivially_copyable_v<T>
  bool array(std::vector<T>& values) {
    std::uint64_t count = 0;
    if (!get(count) || count > remaining() / sizeof(T)) return ok_ = false;
    values.resize(static_cast<std::size_t>(count));
    return raw(values.data(), values.size() * sizeof(T));
  }
  bool text(std::string& value) {
    std::vector<char> characters;
    if (!array(characters)) return false;
    value.assign(characters.begin(), characters.end());
    return true;
  }

  std::size_t position() const { return position_; }
  std::size_t remaining() const { return bytes_.size() - position_; }
  bool ok() const { return ok_; }
  // Everything was there and nothing is left over.
  bool finished() const { return ok_ && remaining() == 0; }

 private:
  std::span<const std::uint8_t> bytes_;
  std::size_t position_ = 0;
  bool ok_ = true;
};

}  // namespace troupe::replay
