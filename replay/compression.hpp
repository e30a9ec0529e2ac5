// How a stored column is packed: LZ4 or Zstandard over blocks of whole rows, so that a row can be
// read without its chunk's others. Pure functions; any thread.
//
// Measured on 84 x 84 x 3 u8 frames (21168 bytes) with sensor noise, one thread of an Intel Xeon:
// lz4 keeps 4.4 kB of a frame, takes 30 000 frames and gives 11 200 items of 4 frames a second; its
// HC search of level 2 keeps 2.7 kB, takes 7 600 and gives 13 200; unpacked it is 246 000 and 108
// 000. Zstandard of level 1 keeps 2.0 kB and unpacks at a third of lz4's speed. The difference of
// successive frames instead of the frames gains lz4 2 % on rendered pictures, loses 9 % on noisy
// ones, and gains zstd, whose window spans the block, no more: none here.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "envs/spec/spec.hpp"

namespace troupe::replay {

// Codes in checkpoints: never renumber.
enum class Compression : std::uint8_t { kNone = 0, kLz4 = 1, kZstd = 2 };

const char* name_of(Compression compression);
// nullopt for a name that is not none, lz4 or zstd.
std::optional<Compression> compression_of(std::string_view name);

// What is asked for, by name of a column. Columns that are not named: lz4 for u8 ones of 1 KiB a
// row or more, none for all others.
using ColumnCompression = std::map<std::string, Compression>;
Compression compression_for(const Column& column, const ColumnCompression& asked);

// Appends the packed bytes of one block, which is not empty, to `out`.
void compress(Compression compression, std::span<const std::uint8_t> block,
              std::vector<std::uint8_t>& out);

// Unpacks one block into exactly `block`; false when the bytes are not those of a block of that
// size. Never writes outside.
bool decompress(Compression compression, std::span<const std::uint8_t> packed,
                std::span<std::uint8_t> block);

}  // namespace troupe::replay
