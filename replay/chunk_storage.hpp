// What the tables of one shard share: where payloads go, the writer of their checkpoints, and the
// count of what their chunks take, in which a chunk that several of them hold counts once.
// Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "envs/spec/result.hpp"
#include "replay/disk_tier.hpp"

namespace troupe::replay {

class CheckpointWriter;
class PackedChunk;

class ChunkStorage {
 public:
  // kIo when there is no room for the disk tier.
  static Result<std::shared_ptr<ChunkStorage>> create(const DiskOptions& disk = {});

  // Of the chunks that at least one table holds.
  struct Totals {
    std::uint64_t chunks = 0;
    std::uint64_t bytes = 0;         // payload as packed
    std::uint64_t memory_bytes = 0;  // what the allocator set aside for them
    std::uint64_t disk_bytes = 0;    // payload in the disk tier
  };
  // Each number is right, but they may be of slightly different moments.
  Totals totals() const;

  // A table takes a chunk in, and gives it up. Chunks of another storage (a snapshot of its tables
  // was adopted) count as often as they are held here.
  void hold(const PackedChunk& chunk);
  void drop(const PackedChunk& chunk);

  // Null without a disk tier.
  const std::shared_ptr<DiskTier>& disk() const { return disk_; }
  const std::shared_ptr<CheckpointWriter>& checkpoint_writer() const { return writer_; }
  // In every chunk that is packed or read for it; never 0, never another storage's.
  std::uint32_t id() const { return id_; }

 private:
  explicit ChunkStorage(std::shared_ptr<DiskTier> disk);
  void count(const PackedChunk& chunk, bool held);

  const std::uint32_t id_;
  const std::shared_ptr<DiskTier> disk_;
  const std::shared_ptr<CheckpointWriter> writer_;
  std::atomic<std::uint64_t> chunks_{0}, bytes_{0}, memory_bytes_{0}, disk_bytes_{0};
};

}  // namespace troupe::replay
