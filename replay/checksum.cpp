// CRC-32C and CRC-32 by ISA-L, which uses the processor's carry-less multiplication.
#include "replay/checksum.hpp"

#include <isa-l/crc.h>

#include <algorithm>

namespace troupe::replay {

std::uint32_t crc32c(std::span<const std::uint8_t> bytes, std::uint32_t previous) {
  // The library counts in int.
  constexpr std::size_t kPiece = std::size_t{1} << 30;
  std::uint32_t state = ~previous;
  while (!bytes.empty()) {
    const std::size_t size = std::min(bytes.size(), kPiece);
    state = crc32_iscsi(const_cast<unsigned char*>(bytes.data()), static_cast<int>(size), state);
    bytes = bytes.subspan(size);
  }
  return ~state;
}
std::uint32_t crc32(std::span<const std::uint8_t> bytes) {
  return crc32_gzip_refl(0, bytes.data(), bytes.size());
}

}  // namespace troupe::replay
