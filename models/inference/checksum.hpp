// CRC-32C of byte ranges, for parameter sets and checkpoints. Pure functions.
#pragma once

#include <cstdint>
#include <span>

namespace troupe::models {

// CRC-32C (Castagnoli; RFC 3720, appendix B.4). "123456789" gives 0xe3069283.
std::uint32_t checksum(std::span<const std::uint8_t> bytes);

}  // namespace troupe::models
