// CRC-32C (Castagnoli, RFC 3720 B.4) and zlib's CRC-32 of byte strings of any length. Pure
// functions.
#pragma once

#include <cstdint>
#include <span>

namespace troupe::replay {

// `previous` continues the checksum of what came before: crc32c(b, crc32c(a)) = crc32c(ab).
std::uint32_t crc32c(std::span<const std::uint8_t> bytes, std::uint32_t previous = 0);
// CRC-32 as zlib and gzip compute it (RFC 1952, 8); for chunks from clients that have no other.
std::uint32_t crc32(std::span<const std::uint8_t> bytes);

}  // namespace troupe::replay
