// Implements the checksum with ISA-L.
#include "models/inference/checksum.hpp"

#include <isa-l/crc.h>

#include <algorithm>

namespace troupe::models {

std::uint32_t checksum(std::span<const std::uint8_t> bytes) {
  constexpr std::size_t kPiece = std::size_t{1} << 30;  // ISA-L takes the length as int
  std::uint32_t crc = 0xffffffffU;
  while (!bytes.empty()) {
    const std::size_t piece = std::min(bytes.size(), kPiece);
    // The library reads only; its signature lacks the const.
    crc = crc32_iscsi(const_cast<unsigned char*>(bytes.data()), static_cast<int>(piece), crc);
    bytes = bytes.subspan(piece);
  }
  return ~crc;
}

}  // namespace troupe::models
