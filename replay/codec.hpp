// Chunks as bytes on the wire, and the checks a chunk passes before it is
// stored. Pure functions; any thread.
//
// Version 1, little-endian, no padding:
//   u32 magic "TRCK" | u32 version | u64 bytes of the whole, checksum included | u64 spec hash
//   u32 worker | u32 incarnation | u64 sequence | u32 environment | u64 episode | u32 first_step
//   u32 steps | u8 end | u64 parameter_version | u32 learner_epoch
//   u16 observation columns | u16 step columns
//   per column: u8 length, name | u8 dtype | u8 rank | i64 extents | u64 rows
//   the columns' data in that order | f32 rewards [steps] | u32 CRC-32C of all before it
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "envs/spec/result.hpp"
#include "replay/bytes.hpp"
#include "replay/signature.hpp"

namespace troupe::replay {

// The header's fields from `worker` to `learner_epoch`, as they stand in every encoding of a chunk.
// get_chunk_header is false when the bytes are not there or the end is none.
void put_chunk_header(ByteWriter& out, const ChunkHeader& header);
bool get_chunk_header(ByteReader& in, ChunkHeader& header);

// What stands in a chunk's last four bytes: CRC-32C everywhere, except that writers whose language
// has only zlib's CRC-32 (RFC 1952, 8) may put that and say so beside the chunk.
enum class ChunkChecksum { kCrc32c, kCrc32 };

struct DecodeLimits {
  std::uint64_t max_bytes = std::uint64_t{256} << 20;  // of one encoded chunk
  std::uint32_t max_steps = 1U << 20;
  ChunkChecksum checksum = ChunkChecksum::kCrc32c;
};

// `chunk` must pass check_shape. One pass of memcpy plus the checksum.
std::vector<std::uint8_t> encode(const Chunk& chunk, const Signature& signature);

// Size of encode's result for a chunk with this header.
std::uint64_t encoded_bytes(const ChunkHeader& header, const Signature& signature);

// kCorrupt, with the reason, for bytes that are cut, changed, of another version or of another
// spec; the size of every part is compared with the bytes at hand before anything is allocated. The
// chunk passes check_shape.
Result<ChunkPtr> decode(std::span<const std::uint8_t> bytes, const Signature& signature,
                        const DecodeLimits& limits = {});

// kInvalidArgument when the header or a column's size does not fit the signature.
Result<void> check_shape(const Chunk& chunk, const Signature& signature,
                         const DecodeLimits& limits = {});

// kNotFinite when a reward or an element of an f32 or f64 column is NaN or infinite; names column
// and step. One pass over the floats.
Result<void> check_finite(const Chunk& chunk, const Signature& signature);

// "chunk 7 of worker 3, incarnation 1, environment 0, episode 12, steps 40-49": for messages.
std::string describe(const ChunkHeader& header);

}  // namespace troupe::replay
