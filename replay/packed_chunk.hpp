// A chunk as a table holds it: header and columns in one allocation, columns packed block by block
// where their layout says so. Immutable but for its reference count, the number of tables that hold
// it and its place in checkpoints; any thread may read it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "envs/spec/result.hpp"
#include "replay/chunk_storage.hpp"
#include "replay/compression.hpp"
#include "replay/signature.hpp"

namespace troupe::replay {

// How the rows of one column are stored.
struct ColumnLayout {
  std::uint64_t row_bytes = 0;
  Compression compression = Compression::kNone;
  std::uint32_t block_rows = 1;  // packed together, the last block of a chunk may have fewer

  bool packed() const { return compression != Compression::kNone; }
  bool operator==(const ColumnLayout&) const = default;
};

// Of all columns of a table's chunks. Made once per kind of table and never destroyed, so that a
// chunk may point to it for as long as it lives.
struct ChunkLayout {
  std::vector<ColumnLayout> columns;  // those of the observation first
  std::size_t observations = 0;       // of which so many

  // The one object that is equal to `layout`. Any thread.
  static const ChunkLayout& intern(ChunkLayout layout);
  static const ChunkLayout& of(const Signature& signature, const ColumnCompression& compression);
  bool operator==(const ChunkLayout&) const = default;
};

class PackedChunk;

// Counts one reference to a chunk.
class PackedPtr {
 public:
  PackedPtr() = default;
  PackedPtr(const PackedPtr& other);
  PackedPtr(PackedPtr&& other) noexcept : chunk_(std::exchange(other.chunk_, nullptr)) {}
  PackedPtr& operator=(PackedPtr other) noexcept {
    std::swap(chunk_, other.chunk_);
    return *this;
  }
  ~PackedPtr();
  // Takes over a reference that is counted already, and gives it up.
  static PackedPtr adopt(const PackedChunk* counted);
  // One more reference to a chunk that somebody else holds.
  static PackedPtr share(const PackedChunk* chunk);
  const PackedChunk* release() { return std::exchange(chunk_, nullptr); }

  const PackedChunk* get() const { return chunk_; }
  const PackedChunk& operator*() const { return *chunk_; }
  const PackedChunk* operator->() const { return chunk_; }
  explicit operator bool() const { return chunk_ != nullptr; }
  bool operator==(const PackedPtr&) const = default;

 private:
  const PackedChunk* chunk_ = nullptr;
};

// Where a chunk stands in the segments of a table's checkpoints; segment 0: nowhere yet.
struct SavedPlace {
  std::uint32_t segment = 0, offset = 0;
};

class PackedChunk {
 public:
  PackedChunk(const PackedChunk&) = delete;
  PackedChunk& operator=(const PackedChunk&) = delete;

  // Packs a chunk of at most kMostBytes that passes check_shape for the layout's signature. Its
  // payload goes to the storage's disk tier, if there is one with room, else to memory.
  static constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 30;
  static PackedPtr pack(const Chunk& chunk, const ChunkLayout& layout,
                        const ChunkStorage* storage = nullptr);

  // The header as bytes (kRecordHead of them), and what it was followed by: the payload. parse
  // checks every size against the bytes at hand before it allocates, so that no reader is ever led
  // outside; packed blocks are checked when they are read. kCorrupt says what is wrong.
  static constexpr std::size_t kRecordHead = 61;
  void append_head(std::vector<std::uint8_t>& out) const;
  static Result<PackedPtr> parse(std::span<const std::uint8_t> record, const ChunkLayout& layout,
                                 const ChunkStorage* storage = nullptr);

  std::uint32_t steps() const { return steps_; }
  std::uint32_t first_step() const { return first_step_; }
  EpisodeEnd end() const { return end_; }
  bool ends() const { return end_ != EpisodeEnd::kContinues; }
  std::uint32_t observation_rows() const { return steps_ + (ends() ? 1 : 0); }
  std::uint64_t episode() const { return episode_; }
  std::uint64_t parameter_version() const { return parameter_version_; }
  // All of it; chunks do not keep the spec hash, which is their table's.
  ChunkHeader header(std::uint64_t spec_hash = 0) const;

  const ChunkLayout& layout() const { return *layout_; }
  std::span<const float> rewards() const {
    return {reinterpret_cast<const float*>(payload().data()), steps_};
  }
  std::span<const std::uint8_t> payload() const {
    return {mapped_ ? external().data : reinterpret_cast<const std::uint8_t*>(this + 1),
            payload_bytes_};
  }
  std::uint64_t bytes() const { return payload_bytes_; }
  std::uint64_t raw_bytes() const;  // of the payload unpacked: columns and rewards
  bool on_disk() const { return mapped_; }
  // What the allocator set aside for it in memory.
  std::uint64_t memory_bytes() const;

  // One column's rows: as they are, or its packed blocks with where each one ends.
  struct ColumnData {
    std::span<const std::uint8_t> data;
    std::span<const std::uint32_t> ends;  // of the packed blocks within data; empty: plain rows
  };
  ColumnData column(std::size_t index) const;
  std::uint32_t rows(std::size_t index) const {
    return index < layout_->observations ? observation_rows() : steps_;
  }

  // For ChunkStorage: which one it was made for (0: none), and whether the table that takes it in
  // or gives it up is the only one of that storage.
  std::uint32_t storage() const { return storage_; }
  bool first_table() const { return tables_.fetch_add(1, std::memory_order_relaxed) == 0; }
  bool last_table() const { return tables_.fetch_sub(1, std::memory_order_relaxed) == 1; }

  // Set by the one writer of its tables' checkpoints.
  SavedPlace saved() const;
  void set_saved(SavedPlace place) const;

 private:
  friend class PackedPtr;
  struct External {
    std::shared_ptr<DiskTier> tier;
    std::uint8_t* data = nullptr;
  };

  PackedChunk(const ChunkHeader& header, const ChunkLayout& layout, std::uint32_t payload_bytes,
              bool mapped);
  ~PackedChunk() = default;
  static PackedPtr make(const ChunkHeader& header, const ChunkLayout& layout,
                        std::span<const std::span<const std::uint8_t>> payload,
                        const ChunkStorage* storage);
  const External& external() const { return *reinterpret_cast<const External*>(this + 1); }
  void destroy() const;
  bool payload_fits() const;

  mutable std::atomic<std::uint32_t> references_{1};
  std::uint32_t steps_, first_step_, payload_bytes_;
  std::uint64_t sequence_, episode_, parameter_version_;
  const ChunkLayout* layout_;
  mutable std::atomic<std::uint64_t> saved_{0};
  std::uint32_t worker_, incarnation_, environment_, learner_epoch_;
  std::uint32_t storage_ = 0;
  mutable std::atomic<std::uint16_t> tables_{0};  // of that storage
  EpisodeEnd end_;
  bool mapped_;
};
static_assert(sizeof(PackedChunk) == 80);

inline PackedPtr::PackedPtr(const PackedPtr& other) : PackedPtr(share(other.chunk_)) {}
inline PackedPtr PackedPtr::adopt(const PackedChunk* counted) {
  PackedPtr pointer;
  pointer.chunk_ = counted;
  return pointer;
}
inline PackedPtr PackedPtr::share(const PackedChunk* chunk) {
  if (chunk != nullptr) chunk->references_.fetch_add(1, std::memory_order_relaxed);
  return adopt(chunk);
}
inline PackedPtr::~PackedPtr() {
  if (chunk_ != nullptr && chunk_->references_.fetch_sub(1, std::memory_order_acq_rel) == 1)
    chunk_->destroy();
}

}  // namespace troupe::replay
