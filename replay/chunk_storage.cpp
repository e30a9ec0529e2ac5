// Implements the count of shared chunks.
#include "replay/chunk_storage.hpp"

#include <utility>

#include "replay/checkpoint.hpp"
#include "replay/packed_chunk.hpp"

namespace troupe::replay {
namespace {

std::uint32_t next_id() {
  static std::atomic<std::uint32_t> last{0};
  std::uint32_t id = 0;
  while (id == 0) id = last.fetch_add(1, std::memory_order_relaxed) + 1;
  return id;
}

}  // namespace

Result<std::shared_ptr<ChunkStorage>> ChunkStorage::create(const DiskOptions& disk) {
  std::shared_ptr<DiskTier> tier;
  if (disk.used()) {
    // Best fit leaves gaps between chunks of different sizes.
    const auto bytes = static_cast<std::uint64_t>(disk.bytes);
    auto made = DiskTier::create(disk.folder, bytes + bytes / 16);
    if (!made) return tl::unexpected(made.error());
    tier = *std::move(made);
  }
  return std::shared_ptr<ChunkStorage>(new ChunkStorage(std::move(tier)));
}

ChunkStorage::ChunkStorage(std::shared_ptr<DiskTier> disk)
    : id_(next_id()), disk_(std::move(disk)), writer_(std::make_shared<CheckpointWriter>()) {}

void ChunkStorage::hold(const PackedChunk& chunk) {
  if (chunk.storage() == id_ && !chunk.first_table()) return;
  count(chunk, true);
}

void ChunkStorage::drop(const PackedChunk& chunk) {
  if (chunk.storage() == id_ && !chunk.last_table()) return;
  count(chunk, false);
}

void ChunkStorage::count(const PackedChunk& chunk, bool held) {
  const std::uint64_t sign = held ? 1 : ~std::uint64_t{0};  // unsigned -1
  const auto add = [&](std::atomic<std::uint64_t>& sum, std::uint64_t value) {
    sum.fetch_add(sign * value, std::memory_order_relaxed);
  };
  add(chunks_, 1);
  add(bytes_, chunk.bytes());
  add(memory_bytes_, chunk.memory_bytes());
  if (chunk.on_disk()) add(disk_bytes_, chunk.bytes());
}

ChunkStorage::Totals ChunkStorage::totals() const {
  return {chunks_.load(std::memory_order_relaxed), bytes_.load(std::memory_order_relaxed),
          memory_bytes_.load(std::memory_order_relaxed),
          disk_bytes_.load(std::memory_order_relaxed)};
}

}  // namespace troupe::replay
