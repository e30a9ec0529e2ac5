// The payload: f32 rewards [T] | u32 ends of blocks, column after column, of those that are packed
// | the columns' rows or blocks.
#include "replay/packed_chunk.hpp"

#include <malloc.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cstdlib>
#include <cstring>
#include <list>
#include <mutex>
#include <new>
#include <string>

#include "replay/bytes.hpp"
#include "replay/codec.hpp"

namespace troupe::replay {
namespace {

// Blocks are cut to about this size: a frame of 84 x 84 x 3 bytes is read with three neighbours at
// most.
constexpr std::uint64_t kBlockBytes = std::uint64_t{96} << 10;

std::uint64_t blocks_of(const ColumnLayout& column, std::uint64_t rows) {
  return column.packed() ? (rows + column.block_rows - 1) / column.block_rows : 0;
}

}  // namespace

const ChunkLayout& ChunkLayout::intern(ChunkLayout layout) {
  static std::mutex mutex;
  static std::list<ChunkLayout>& known = *new std::list<ChunkLayout>;  // chunks may outlive statics
  const std::lock_guard lock(mutex);
  for (const ChunkLayout& one : known)
    if (one == layout) return one;
  return known.emplace_back(std::move(layout));
}

const ChunkLayout& ChunkLayout::of(const Signature& signature,
                                   const ColumnCompression& compression) {
  ChunkLayout layout;
  layout.observations = signature.observation.size();
  for (const auto* columns : {&signature.observation, &signature.step})
    for (const Column& column : *columns) {
      ColumnLayout& one = layout.columns.emplace_back();
      one.row_bytes = column.bytes();
      if (one.row_bytes > 0) one.compression = compression_for(column, compression);
      if (one.packed())
        one.block_rows = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(
            kBlockBytes / std::max<std::uint64_t>(one.row_bytes, 1), 1, std::uint64_t{1} << 16));
    }
  return intern(std::move(layout));
}

PackedChunk::PackedChunk(const ChunkHeader& header, const ChunkLayout& layout,
                         std::uint32_t payload_bytes, bool mapped)
    : steps_(header.steps),
      first_step_(header.first_step),
      payload_bytes_(payload_bytes),
      sequence_(header.sequence),
      episode_(header.episode),
      parameter_version_(header.parameter_version),
      layout_(&layout),
      worker_(header.worker),
      incarnation_(header.incarnation),
      environment_(header.environment),
      learner_epoch_(header.learner_epoch),
      end_(header.end),
      mapped_(mapped) {}

PackedPtr PackedChunk::make(const ChunkHeader& header, const ChunkLayout& layout,
                            std::span<const std::span<const std::uint8_t>> payload,
                            const ChunkStorage* storage) {
  std::size_t bytes = 0;
  for (const auto& part : payload) bytes += part.size();
  const std::shared_ptr<DiskTier> tier = storage != nullptr ? storage->disk() : nullptr;
  std::uint8_t* mapped = tier ? tier->allocate(bytes) : nullptr;
  void* memory = std::malloc(sizeof(PackedChunk) + (mapped != nullptr ? sizeof(External) : bytes));
  if (memory == nullptr) throw std::bad_alloc();
  auto* chunk = new (memory)
      PackedChunk(header, layout, static_cast<std::uint32_t>(bytes), mapped != nullptr);
  if (storage != nullptr) chunk->storage_ = storage->id();
  std::uint8_t* to = mapped;
  if (mapped != nullptr)
    new (chunk + 1) External{tier, mapped};
  else
    to = reinterpret_cast<std::uint8_t*>(chunk + 1);
  for (const auto& part : payload) to = std::copy(part.begin(), part.end(), to);
  return PackedPtr::adopt(chunk);
}

void PackedChunk::destroy() const {
  auto* self = const_cast<PackedChunk*>(this);
  if (mapped_) {
    auto* external = reinterpret_cast<External*>(self + 1);
    external->tier->free(external->data, payload_bytes_);
    external->~External();
  }
  self->~PackedChunk();
  std::free(self);
}

PackedPtr PackedChunk::pack(const Chunk& chunk, const ChunkLayout& layout,
                            const ChunkStorage* storage) {
  assert(chunk.observation.size() == layout.observations);
  assert(chunk.observation.size() + chunk.step.size() == layout.columns.size());
  std::vector<std::span<const std::uint8_t>> parts;
  parts.emplace_back(reinterpret_cast<const std::uint8_t*>(chunk.reward.data()),
                     chunk.reward.size() * sizeof(float));
  parts.emplace_back();  // the directory, once it is known
  std::vector<std::uint32_t> ends;
  std::vector<std::vector<std::uint8_t>> packed(layout.columns.size());
  for (std::size_t c = 0; c < layout.columns.size(); ++c) {
    const ColumnLayout& column = layout.columns[c];
    const std::vector<std::uint8_t>& rows =
        c < layout.observations ? chunk.observation[c] : chunk.step[c - layout.observations];
    if (!column.packed()) {
      parts.emplace_back(rows);
      continue;
    }
    const std::size_t block = column.block_rows * column.row_bytes;
    for (std::size_t first = 0; first < rows.size(); first += block) {
      compress(column.compression,
               std::span(rows).subspan(first, std::min(block, rows.size() - first)), packed[c]);
      ends.push_back(static_cast<std::uint32_t>(packed[c].size()));
    }
    parts.emplace_back(packed[c]);
  }
  parts[1] = {reinterpret_cast<const std::uint8_t*>(ends.data()),
              ends.size() * sizeof(std::uint32_t)};
  return make(chunk.header, layout, parts, storage);
}

ChunkHeader PackedChunk::header(std::uint64_t spec_hash) const {
  return {.worker = worker_,
          .incarnation = incarnation_,
          .sequence = sequence_,
          .environment = environment_,
          .episode = episode_,
          .first_step = first_step_,
          .steps = steps_,
          .end = end_,
          .parameter_version = parameter_version_,
          .learner_epoch = learner_epoch_,
          .spec_hash = spec_hash};
}

void PackedChunk::append_head(std::vector<std::uint8_t>& out) const {
  ByteWriter to(out);
  put_chunk_header(to, header(0));
  to.put(std::uint64_t{payload_bytes_});
  to.put(std::uint32_t{0});
}

Result<PackedPtr> PackedChunk::parse(std::span<const std::uint8_t> record,
                                     const ChunkLayout& layout, const ChunkStorage* storage) {
  ByteReader in(record);
  ChunkHeader header;
  const bool good = get_chunk_header(in, header);
  const auto bytes = in.take<std::uint64_t>();
  const auto zero = in.take<std::uint32_t>();
  if (!good || !in.ok() || zero != 0)
    return fail(ErrorCode::kCorrupt, "a chunk's header is malformed");
  if (header.steps == 0 || header.steps > ~std::uint32_t{0} - header.first_step)
    return fail(ErrorCode::kCorrupt, "a chunk has no steps, or counts them beyond 32 bits");
  if (bytes != in.remaining() || bytes > ~std::uint32_t{0})
    return fail(ErrorCode::kCorrupt, "a chunk says " + std::to_string(bytes) +
                                         " bytes of columns but has " +
                                         std::to_string(in.remaining()));
  // Room for the rewards and the directory, before either is looked at.
  const std::uint64_t rows = std::uint64_t{header.steps} + (header.ends() ? 1 : 0);
  std::uint64_t needed = std::uint64_t{header.steps} * sizeof(float);
  for (std::size_t c = 0; c < layout.columns.size(); ++c)
    needed += sizeof(std::uint32_t) *
              blocks_of(layout.columns[c], c < layout.observations ? rows : header.steps);
  if (needed > bytes) return fail(ErrorCode::kCorrupt, "a chunk ends inside its rewards");
  const std::array payload{in.view(bytes)};
  PackedPtr chunk = make(header, layout, payload, storage);
  if (!chunk->payload_fits())
    return fail(ErrorCode::kCorrupt, "a chunk's columns do not fit its bytes");
  return chunk;
}

// Whether the columns, by their own sizes, fill the payload exactly.
bool PackedChunk::payload_fits() const {
  std::uint64_t total = std::uint64_t{steps_} * sizeof(float);
  const std::uint8_t* directory = payload().data() + total;
  for (std::size_t c = 0; c < layout_->columns.size(); ++c) {
    const ColumnLayout& column = layout_->columns[c];
    if (!column.packed()) {
      if (column.row_bytes > 0 && rows(c) > payload_bytes_ / column.row_bytes) return false;
      total += rows(c) * column.row_bytes;
      continue;
    }
    const std::uint64_t blocks = blocks_of(column, rows(c));
    std::uint32_t before = 0;
    for (std::uint64_t i = 0; i < blocks; ++i) {
      std::uint32_t end = 0;
      std::memcpy(&end, directory, sizeof end);
      directory += sizeof end;
      if (end <= before) return false;
      before = end;
    }
    total += before + blocks * sizeof(std::uint32_t);
  }
  return total == payload_bytes_;
}

PackedChunk::ColumnData PackedChunk::column(std::size_t index) const {
  const std::uint8_t* const base = payload().data();
  const std::uint8_t* directory = base + std::size_t{steps_} * sizeof(float);
  // Columns that come before, in the directory and in the data.
  const std::uint32_t* ends = reinterpret_cast<const std::uint32_t*>(directory);
  const std::uint32_t* own_ends = ends;
  std::uint64_t before = 0, own = 0;
  for (std::size_t c = 0; c < layout_->columns.size(); ++c) {
    const ColumnLayout& column = layout_->columns[c];
    const std::uint64_t blocks = blocks_of(column, rows(c));
    if (c < index)
      before += column.packed() ? ends[blocks - 1] : rows(c) * column.row_bytes;
    else if (c == index) {
      own = column.packed() ? ends[blocks - 1] : rows(c) * column.row_bytes;
      own_ends = ends;
    }
    ends += blocks;
  }
  const auto* data = reinterpret_cast<const std::uint8_t*>(ends) + before;
  const std::uint64_t blocks = blocks_of(layout_->columns[index], rows(index));
  return {{data, static_cast<std::size_t>(own)}, {own_ends, static_cast<std::size_t>(blocks)}};
}

std::uint64_t PackedChunk::raw_bytes() const {
  std::uint64_t total = std::uint64_t{steps_} * sizeof(float);
  for (std::size_t c = 0; c < layout_->columns.size(); ++c)
    total += rows(c) * layout_->columns[c].row_bytes;
  return total;
}

std::uint64_t PackedChunk::memory_bytes() const {
  return ::malloc_usable_size(const_cast<PackedChunk*>(this)) + sizeof(std::size_t);
}

SavedPlace PackedChunk::saved() const {
  const std::uint64_t place = saved_.load(std::memory_order_relaxed);
  return {static_cast<std::uint32_t>(place >> 32), static_cast<std::uint32_t>(place)};
}

void PackedChunk::set_saved(SavedPlace place) const {
  saved_.store(std::uint64_t{place.segment} << 32 | place.offset, std::memory_order_relaxed);
}

}  // namespace troupe::replay
