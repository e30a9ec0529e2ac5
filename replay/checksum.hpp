// CRC-32C (Castagnoli, RFC 3720 B.4) of byte strings of any length. Pure function.
#pragma once

#include <cstdint>
#include <span>

namespace troupe::replay {

// `previous` continues the checksum of what came before: crc32c(b, crc32c(a)) = crc32c(ab).
std::uint32_t crc32c(std::span<const std::uint8_t> bytes, std::uint32_t previous = 0);

}  // namespace troupe::replay
