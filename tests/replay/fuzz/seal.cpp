// The layouts are those of replay/codec.hpp and replay/checkpoint.hpp.
#include "tests/replay/fuzz/seal.hpp"

#include <algorithm>
#include <cstring>

#include "replay/bytes.hpp"
#include "replay/checksum.hpp"

namespace troupe::replay::fuzz {
namespace {

template <class T>
void store(std::uint8_t* at, T value) {
  std::memcpy(at, &value, sizeof value);
}

template <class T>
T load(const std::uint8_t* at) {
  T value{};
  std::memcpy(&value, at, sizeof value);
  return value;
}

}  // namespace

void seal_chunk(std::uint8_t* data, std::size_t size) {
  if (size < 28) return;
  store(data + 8, static_cast<std::uint64_t>(size));
  store(data + size - 4, crc32c({data, size - 4}));
}

Sections take_apart(const std::uint8_t* data, std::size_t size) {
  Sections parts;
  parts.header.assign(data, data + std::min(size, Sections::kHeader));
  parts.header.resize(Sections::kHeader);
  std::size_t at = Sections::kHeader;
  while (at + 16 <= size && parts.sections.size() < 8) {
    const auto length = load<std::uint64_t>(data + at + 4);
    if (length > size - at - 16) break;
    const auto* payload = data + at + 12;
    parts.sections.push_back({load<std::uint32_t>(data + at), {payload, payload + length}});
    at += 16 + static_cast<std::size_t>(length);
  }
  return parts;
}

Bytes put_together(Sections parts) {
  Bytes bytes = parts.header;
  ByteWriter out(bytes);
  for (Sections::Section& section : parts.sections) {
    const std::size_t first = bytes.size();
    out.put(section.tag);
    out.put(static_cast<std::uint64_t>(section.payload.size()));
    out.bytes(section.payload.data(), section.payload.size());
    out.put(crc32c(std::span(bytes).subspan(first)));
  }
  store(bytes.data() + 16, static_cast<std::uint64_t>(bytes.size()));
  store(bytes.data() + 24, crc32c(std::span(bytes).first(24)));
  return bytes;
}

}  // namespace troupe::replay::fuzz
