// Tables in files: a consistent cut is written outside the table's lock, and a file is believed
// only when every byte of it checks. Any thread; several tables may be written at once to different
// paths.
//
// Version 4, little-endian:
//   u64 magic "TRPTABLE" | u32 version | u32 zero | u64 bytes of the file | u32 CRC-32C of these 24
//   bytes then four sections OPTS ITEM CHNK STAT, each u32 tag | u64 bytes | payload | u32 CRC-32C
//   of tag, bytes and payload
// Chunks are written as they are held, packed; those that a CheckpointWriter has written before lie
// in segments, files beside this one (replay/checkpoint_parts.hpp). All sizes are 64 bits.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "envs/spec/result.hpp"
#include "replay/table.hpp"

namespace troupe::replay {

// Writes to a temporary name beside `path`, syncs file and directory, and renames: the file under
// `path` is the old or the new one, never half of one. kIo with path and reason. Returns the bytes
// written.
Result<std::uint64_t> write_checkpoint(const TableSnapshot& snapshot,
                                       const std::filesystem::path& path);

// Reads and checks a whole file and its segments; memory as for the table it holds. Its
// chunks are made for `storage`, whose disk tier takes their payload while it has room. `signature`
// is what the file must have been written with. kNotFound, kIo or kCorrupt; every message names the
// file.
Result<TableSnapshot> read_checkpoint(const std::filesystem::path& path, const Signature& signature,
                                      const ChunkStorage* storage = nullptr);

// The columns and spec hash that a file was written with, from its head alone: for tools that look
// at a table without its environment. Errors as of read_checkpoint.
Result<Signature> read_signature(const std::filesystem::path& path);

// read_checkpoint, then Table::adopt: the table is unchanged unless all of it is good. Returns what
// differs between the file's options and the table's, one sentence each; the table's win. The
// table's own checkpoints go on with the segments that were read.
Result<std::vector<std::string>> restore(Table& table, const std::filesystem::path& path);

struct CheckpointWriterOptions {
  // Chunks that are not in a segment yet go into the table's own file until they have so many
  // bytes.
  std::uint64_t min_segment_bytes = std::uint64_t{16} << 20;
  std::uint64_t max_segment_bytes = std::uint64_t{1} << 30;  // below 2^32: places have 32 bits
};

// Writes the checkpoints of the tables of one storage, each complete in a folder of its own: what
// is in segments of the checkpoint before, or of another table that holds the same chunks, is
// linked, not copied; less than min_segment_bytes of new chunks are written each time. A segment
// whose chunks are mostly gone, or that cannot be linked, is written anew. Folders may be deleted
// in any order. Thread-safe: tables are written one after the other.
class CheckpointWriter {
 public:
  // `draw` gives the numbers of new segments; empty: random ones.
  explicit CheckpointWriter(CheckpointWriterOptions options = {},
                            std::function<std::uint32_t()> draw = {});
  // Begins with the segments of the checkpoint that the table under `path` was restored from.
  void go_on(const std::filesystem::path& path, std::vector<SegmentFile> segments);

  struct File {
    std::filesystem::path path;
    std::uint64_t bytes = 0;
    std::uint32_t crc32c = 0;
    bool linked = false;  // written by an earlier checkpoint
  };
  // Writes the table's file to `path`, and segments beside it, whose names begin like its own. The
  // folder must not hold a checkpoint under that name yet: a table is known by the name, and goes
  // on with the segments of its checkpoint before. kIo names the file.
  Result<std::vector<File>> write(const TableSnapshot& snapshot, const std::filesystem::path& path);

 private:
  struct Segment {
    SegmentFile file;
    std::vector<std::filesystem::path> places;  // where it was linked, newest last
  };
  bool link(Segment& segment, const std::filesystem::path& path) const;
  static bool has_number(const std::vector<Segment>& segments, std::uint32_t number);
  std::vector<Segment> known_segments(const std::string& table) const;
  std::uint32_t free_number(const std::vector<Segment>& used) const;
  Result<void> write_segments(const std::vector<const PackedChunk*>& chunks,
                              const std::filesystem::path& path, std::vector<Segment>& used);

  const CheckpointWriterOptions options_;
  const std::function<std::uint32_t()> draw_;
  std::mutex mutex_;
  std::map<std::string, std::vector<Segment>> segments_;  // of each table's last checkpoint
};

}  // namespace troupe::replay
