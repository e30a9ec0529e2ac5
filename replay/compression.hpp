// How a stored column is packed: LZ4 or Zstandard over blocks of whole rows, so that a row can be
// read without its chunk's others. Pure functions; any thread.
//
// Measured on 84 x 84 x 3 u8 frames (21168 bytes) in blocks of 4, one thread of an AMD EPYC: lz4,
// by its HC search of level 2, keeps 5.1 kB of a rendered cheetah and 2.7 kB of a synthetic frame
// with sensor noise, packs 0.1 GB/s and unpacks 2 to 3; zstd, level 1, 4.6 and 2.0 kB, 0.3 and
// 0.7 to 1 GB/s. The difference of successive frames instead of the frames gains lz4 2 % on the
// first, loses 9 % on the second, and gains zstd, whose window spans the block, no more: none here.
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
