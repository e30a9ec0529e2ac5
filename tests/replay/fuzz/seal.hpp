// Gives changed chunks and checkpoints the lengths and checksums of what they now hold, so that a
// fuzzer's changes get past them. Pure functions over bytes.
#pragma once

#include <cstdint>
#include <vector>

namespace troupe::replay::fuzz {

using Bytes = std::vector<std::uint8_t>;

// Sets the length and the checksum of an encoded chunk, if it is long enough to have them.
void seal_chunk(std::uint8_t* data, std::size_t size);

// A checkpoint file taken apart.
struct Sections {
  static constexpr std::size_t kHeader = 28;
  struct Section {
    std::uint32_t tag = 0;
    Bytes payload;
  };
  Bytes header;  // kHeader bytes
  std::vector<Section> sections;
};

// As many sections as the lengths in the file allow.
Sections take_apart(const std::uint8_t* data, std::size_t size);
// The file again, with all lengths and checksums right.
Bytes put_together(Sections parts);

}  // namespace troupe::replay::fuzz
