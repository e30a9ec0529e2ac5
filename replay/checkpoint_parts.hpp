// What the files of the checkpoint format share; for checkpoint*.cpp alone.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "replay/bytes.hpp"
#include "replay/file.hpp"
#include "replay/table.hpp"

namespace troupe::replay {

std::vector<std::uint8_t> encode_options(const TableSnapshot& snapshot);
Result<void> decode_options(const SectionReader& file, const std::vector<std::uint8_t>& bytes,
                            const Signature& signature, TableSnapshot& snapshot);
// The signature at the beginning of the section; nothing when it describes none.
std::optional<Signature> take_signature(const std::vector<std::uint8_t>& bytes);

// Of a chunk as it is written: head and payload.
std::uint64_t record_bytes(const PackedChunk& chunk);
void write_record(SectionWriter& file, const PackedChunk& chunk);

// "replay-0.table" -> "replay-0.5f3a0c11.chunks" in the same folder.
std::filesystem::path segment_path(const std::filesystem::path& table, std::uint32_t number);

// Segments begin with u64 magic "TRPCHNKS", u32 version, u32 number.
inline constexpr std::uint64_t kSegmentMagic = 0x534b4e4843505254;
inline constexpr std::uint32_t kSegmentVersion = 1, kSegmentHead = 16;

// The chunks section of a table's file, version 4.
//   u64 layouts | per layout and column: u8 compression, u32 rows of a block
//   u64 segments | per segment: u32 number, u64 bytes, u32 CRC-32C of the file
//   u64 slots | u64 held | per held chunk: u32 slot, u32 next, u32 layout, u32 segment, u32 offset,
//   u64 length, and its record where the segment is 0
// `segments` are those in which chunks may stand by their saved() place; the others are written
// here.
class ChunkSection {
 public:
  ChunkSection(const TableSnapshot& snapshot, const std::vector<SegmentFile>& segments);
  std::uint64_t bytes() const { return bytes_; }
  void write(SectionWriter& file) const;

 private:
  bool in_segment(const PackedChunk& chunk) const;
  std::uint32_t layout_of(const PackedChunk& chunk) const;

  const TableSnapshot& snapshot_;
  const std::vector<SegmentFile>& segments_;
  std::vector<const ChunkLayout*> layouts_;
  std::uint64_t held_ = 0, bytes_ = 0;
};

// The file of a snapshot, whose chunks in `segments` are not in it. Returns bytes and checksum.
struct WrittenTable {
  std::uint64_t bytes = 0;
  std::uint32_t crc32c = 0;
};
Result<WrittenTable> write_table(const TableSnapshot& snapshot, const std::filesystem::path& path,
                                 const std::vector<SegmentFile>& segments);

// Reads the section and the segments beside `path`. Chunks are made for `storage`.
Result<void> read_chunks(SectionReader& file, const std::filesystem::path& path,
                         TableSnapshot& snapshot, const ChunkStorage* storage);

}  // namespace troupe::replay
