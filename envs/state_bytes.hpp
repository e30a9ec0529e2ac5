// Writes and reads the saved state of environments: plain values one after another, native byte
// order (states are read back on hosts of the same kind). Reading never passes the end. Plain
// functions, no thread rule.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

namespace troupe::envs {

template <class T>
void append(std::vector<std::uint8_t>& out, std::span<const T> values) {
  static_assert(std::is_trivially_copyable_v<T>);
  if (values.empty()) return;
  const std::size_t end = out.size();
  out.resize(end + values.size_bytes());
  std::memcpy(out.data() + end, values.data(), values.size_bytes());
}

template <class T>
requires std::is_trivially_copyable_v<T>
void append(std::vector<std::uint8_t>& out, const T& value) {
  append(out, std::span<const T>(&value, 1));
}

class StateReader {
 public:
  explicit StateReader(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}

  // False, and nothing read, when fewer bytes are left.
  template <class T>
  bool read(std::span<T> values) {
    static_assert(std::is_trivially_copyable_v<T>);
    if (bytes_.size() < values.size_bytes()) return false;
    if (!values.empty()) std::memcpy(values.data(), bytes_.data(), values.size_bytes());
    bytes_ = bytes_.subspan(values.size_bytes());
    return true;
  }
  template <class T>
  requires std::is_trivially_copyable_v<T>
  bool read(T& value) { return read(std::span<T>(&value, 1)); }

  // Takes `size` bytes off the front; when fewer are left, `complete` is false and nothing is
  // taken.
  std::span<const std::uint8_t> take(std::uint64_t size, bool& complete) {
    complete = size <= bytes_.size();
    if (!complete) return {};
    const auto taken = bytes_.first(static_cast<std::size_t>(size));
    bytes_ = bytes_.subspan(static_cast<std::size_t>(size));
    return taken;
  }

  std::span<const std::uint8_t> rest() const { return bytes_; }
  bool at_end() const { return bytes_.empty(); }

 private:
  std::span<const std::uint8_t> bytes_;
};

}  // namespace troupe::envs
