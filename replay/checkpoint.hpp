// Tables in files: a consistent cut is written outside the table's lock, and a file is believed
// only when every byte of it checks. Any thread; several tables may be written at once to different
// paths.
//
// Version 3, little-endian:
//   u64 magic "TRPTABLE" | u32 version | u32 zero | u64 bytes of the file | u32 CRC-32C of these 24
//   bytes then four sections OPTS ITEM CHNK STAT, each u32 tag | u64 bytes | payload | u32 CRC-32C
//   of tag, bytes and payload
// Chunks are encoded as in replay/codec.hpp. All sizes are 64 bits.
#pragma once

#include <filesystem>
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

// Reads and checks a whole file; memory as for the table it holds. `signature` is what the file
// must have been written with. kNotFound, kIo or kCorrupt; every message names the file.
Result<TableSnapshot> read_checkpoint(const std::filesystem::path& path,
                                      const Signature& signature);

// The columns and spec hash that a file was written with, from its head alone: for tools that look
// at a table without its environment. Errors as of read_checkpoint.
Result<Signature> read_signature(const std::filesystem::path& path);

// read_checkpoint, then Table::adopt: the table is unchanged unless all of it is good. Returns what
// differs between the file's options and the table's, one sentence each; the table's win.
Result<std::vector<std::string>> restore(Table& table, const std::filesystem::path& path);

}  // namespace troupe::replay
