// The checkpoint format of checkpoint.hpp, version 3.
#include "replay/checkpoint.hpp"

#include <limits>
#include <optional>
#include <utility>

#include "replay/bytes.hpp"
#include "replay/checksum.hpp"
#include "replay/codec.hpp"
#include "replay/file.hpp"

namespace troupe::replay {
namespace {

constexpr std::uint64_t kMagic = 0x454c424154505254;  // "TRPTABLE"
constexpr std::uint32_t kVersion = 3;
constexpr std::uint64_t kHeader = 28, kFrame = 16;  // bytes around the sections, and around each
constexpr std::uint32_t kOptions = 0x5354504f, kItems = 0x4d455449, kChunks = 0x4b4e4843,
                        kState = 0x54415453;  // "OPTS", "ITEM", "CHNK", "STAT"
constexpr std::uint64_t kChunkHead = 16;      // slot, next slot, length

using Bytes = std::vector<std::uint8_t>;

void put_columns(ByteWriter& out, const std::vector<Column>& columns) {
  out.put(static_cast<std::uint64_t>(columns.size()));
  for (const Column& column : columns) {
    out.text(column.name);
    out.put(static_cast<std::uint8_t>(column.dtype));
    out.array(std::span<const std::int64_t>(column.shape));
  }
}

// Compared, never kept: nothing is allocated from what the file says beyond its own bytes.
bool same_columns(ByteReader& in, const std::vector<Column>& columns) {
  bool same = in.take<std::uint64_t>() == columns.size();
  for (const Column& column : columns) {
    if (!same) break;
    Column read;
    in.text(read.name);
    same = in.take<std::uint8_t>() == static_cast<std::uint8_t>(column.dtype);
    read.dtype = column.dtype;
    in.array(read.shape);
    same = same && in.ok() && read == column;
  }
  return same;
}

// Nothing when the bytes describe no columns that a table could have.
std::optional<std::vector<Column>> take_columns(ByteReader& in) {
  constexpr std::int64_t kMostElements = std::int64_t{1} << 31;
  std::vector<Column> columns;
  for (auto count = in.take<std::uint64_t>(); count > 0 && in.ok(); --count) {
    Column& column = columns.emplace_back();
    in.text(column.name);
    const auto dtype = in.take<std::uint8_t>();
    column.dtype = static_cast<DType>(dtype);
    in.array(column.shape);
    std::int64_t elements = 1;
    for (const std::int64_t extent : column.shape) {
      if (extent < 1 || extent > kMostElements / elements) return std::nullopt;
      elements *= extent;
    }
    if (dtype > static_cast<std::uint8_t>(DType::kU64)) return std::nullopt;
  }
  if (!in.ok()) return std::nullopt;
  return columns;
}

void put_shape(ByteWriter& out, const ItemShape& shape) {
  out.put(static_cast<std::uint8_t>(shape.kind));
  out.put(shape.length);
  out.put(shape.period);
  out.put(shape.burn_in);
  out.put(static_cast<std::uint8_t>(shape.across_episodes));
  out.put(static_cast<std::uint8_t>(shape.tail));
}

ItemShape take_shape(ByteReader& in) {
  ItemShape shape;
  shape.kind = static_cast<ItemShape::Kind>(in.take<std::uint8_t>());
  in.get(shape.length);
  in.get(shape.period);
  in.get(shape.burn_in);
  shape.across_episodes = in.take<std::uint8_t>() != 0;
  shape.tail = static_cast<ItemShape::Tail>(in.take<std::uint8_t>());
  return shape;
}

Bytes encode_options(const TableSnapshot& snapshot) {
  const TableOptions& options = snapshot.options;
  Bytes bytes;
  ByteWriter out(bytes);
  out.put(snapshot.signature.spec_hash);
  put_columns(out, snapshot.signature.observation);
  put_columns(out, snapshot.signature.step);
  out.put(options.capacity);
  out.put(options.limiter.min_size);
  out.put(options.limiter.samples_per_insert);
  out.put(options.limiter.error_buffer);
  out.put(options.n_step);
  out.put(options.discount);
  put_shape(out, options.items);
  out.text(options.selector);
  out.text(options.remover);
  out.put(options.shard);
  out.put(options.shard_epoch);
  out.put(options.seed);
  out.put(options.max_chunk_steps);
  out.put(options.priority_exponent);
  out.put(options.importance_exponent);
  out.put(static_cast<std::uint8_t>(options.weight_scale));
  out.put(options.max_times_sampled);
  out.put(options.capacity_bytes);
  out.put(static_cast<std::uint8_t>(options.limiter.kind));
  out.put(options.limiter.size);
  return bytes;
}

Result<void> decode_options(const SectionReader& file, const Bytes& bytes,
                            const Signature& signature, TableSnapshot& snapshot) {
  ByteReader in(bytes);
  TableOptions& options = snapshot.options;
  const auto spec_hash = in.take<std::uint64_t>();
  if (spec_hash != signature.spec_hash)
    return file.corrupt("was written for an environment with spec hash " +
                        std::to_string(spec_hash) + ", not " + std::to_string(signature.spec_hash));
  if (!same_columns(in, signature.observation) || !same_columns(in, signature.step))
    return file.corrupt("has other columns than the environment");
  in.get(options.capacity);
  in.get(options.limiter.min_size);
  in.get(options.limiter.samples_per_insert);
  in.get(options.limiter.error_buffer);
  in.get(options.n_step);
  in.get(options.discount);
  options.items = take_shape(in);
  in.text(options.selector);
  in.text(options.remover);
  in.get(options.shard);
  in.get(options.shard_epoch);
  in.get(options.seed);
  in.get(options.max_chunk_steps);
  in.get(options.priority_exponent);
  in.get(options.importance_exponent);
  options.weight_scale = static_cast<WeightScale>(in.take<std::uint8_t>());
  in.get(options.max_times_sampled);
  in.get(options.capacity_bytes);
  options.limiter.kind = static_cast<LimiterKind>(in.take<std::uint8_t>());
  in.get(options.limiter.size);
  if (!in.finished()) return file.corrupt("section 'options' is malformed");
  snapshot.signature = signature;
  return {};
}

std::uint64_t chunks_section_bytes(const TableSnapshot& snapshot) {
  std::uint64_t total = 2 * sizeof(std::uint64_t);
  for (const StoredChunk& stored : snapshot.cut.chunks)
    if (stored.chunk) total += kChunkHead + encoded_bytes(stored.chunk->header, snapshot.signature);
  return total;
}

void write_chunks(SectionWriter& file, const TableSnapshot& snapshot, std::uint64_t bytes) {
  file.begin_section(kChunks, bytes);
  std::uint64_t held = 0;
  for (const StoredChunk& stored : snapshot.cut.chunks) held += stored.chunk ? 1 : 0;
  Bytes head;
  ByteWriter out(head);
  out.put(static_cast<std::uint64_t>(snapshot.cut.chunks.size()));
  out.put(held);
  file.write(head);
  for (std::size_t slot = 0; slot < snapshot.cut.chunks.size(); ++slot) {
    const StoredChunk& stored = snapshot.cut.chunks[slot];
    if (!stored.chunk) continue;
    const Bytes encoded = encode(*stored.chunk, snapshot.signature);
    head.clear();
    out.put(static_cast<ChunkSlot>(slot));
    out.put(stored.next);
    out.put(static_cast<std::uint64_t>(encoded.size()));
    file.write(head);
    file.write(encoded);
  }
  file.end_section();
}

Result<void> read_chunks(SectionReader& file, TableSnapshot& snapshot) {
  if (auto good = file.begin_section(kChunks, "chunks"); !good) return good;
  Bytes bytes;
  if (auto good = file.read(2 * sizeof(std::uint64_t), bytes); !good) return good;
  ByteReader counts(bytes);
  const auto slots = counts.take<std::uint64_t>(), held = counts.take<std::uint64_t>();
  // Every slot without a chunk is listed as free in the state, with four bytes.
  if (slots > file.remaining() / sizeof(ChunkSlot) || held > slots)
    return file.corrupt("section 'chunks' says more slots than its bytes can describe");
  auto& chunks = snapshot.cut.chunks;
  chunks.resize(static_cast<std::size_t>(slots));
  for (std::uint64_t i = 0; i < held; ++i) {
    if (auto good = file.read(kChunkHead, bytes); !good) return good;
    ByteReader head(bytes);
    const auto slot = head.take<ChunkSlot>(), next = head.take<ChunkSlot>();
    const auto length = head.take<std::uint64_t>();
    if (slot >= slots || chunks[slot].chunk) return file.corrupt("a chunk's slot is wrong");
    if (auto good = file.read(length, bytes); !good) return good;
    const DecodeLimits limits{.max_bytes = length,
                              .max_steps = std::numeric_limits<std::uint32_t>::max()};
    auto chunk = decode(bytes, snapshot.signature, limits);
    if (!chunk) return file.corrupt(chunk.error().message);
    chunks[slot].chunk = *std::move(chunk);
    chunks[slot].next = next;
  }
  return file.end_section();
}

Result<void> read_section(SectionReader& file, std::uint32_t tag, const char* name, Bytes& bytes) {
  if (auto good = file.begin_section(tag, name); !good) return good;
  if (auto good = file.read(file.section_remaining(), bytes); !good) return good;
  return file.end_section();
}

Result<void> read_header(SectionReader& file) {
  Bytes bytes;
  if (file.file_bytes() < kHeader)
    return file.corrupt("has " + std::to_string(file.file_bytes()) +
                        " bytes: no replay checkpoint");
  if (auto good = file.read(kHeader, bytes); !good) return good;
  ByteReader in(bytes);
  const auto magic = in.take<std::uint64_t>();
  const auto version = in.take<std::uint32_t>();
  const auto zero = in.take<std::uint32_t>();
  const auto size = in.take<std::uint64_t>();
  const auto checksum = in.take<std::uint32_t>();
  if (magic != kMagic) return file.corrupt("is no replay checkpoint (wrong magic)");
  if (checksum != crc32c(std::span(bytes).first(kHeader - 4)) || zero != 0)
    return file.corrupt("its header fails its checksum");
  if (version != kVersion)
    return file.corrupt("has format version " + std::to_string(version) +
                        "; this program reads version " + std::to_string(kVersion));
  if (size != file.file_bytes())
    return file.corrupt("should have " + std::to_string(size) + " bytes but has " +
                        std::to_string(file.file_bytes()) + ": it is truncated or was added to");
  return {};
}

Result<void> read_all(SectionReader& file, const Signature& signature, TableSnapshot& snapshot) {
  Bytes bytes;
  if (auto good = read_header(file); !good) return good;
  if (auto good = read_section(file, kOptions, "options", bytes); !good) return good;
  if (auto good = decode_options(file, bytes, signature, snapshot); !good) return good;
  if (auto good = read_section(file, kItems, "items", bytes); !good) return good;
  ByteReader items(bytes);
  if (!items.array(snapshot.cut.items) || !items.finished())
    return file.corrupt("section 'items' is malformed");
  if (auto good = read_chunks(file, snapshot); !good) return good;
  if (auto good = read_section(file, kState, "state", snapshot.cut.state); !good) return good;
  if (file.remaining() != 0) return file.corrupt("has bytes after its last section");
  return {};
}

}  // namespace

Result<std::uint64_t> write_checkpoint(const TableSnapshot& snapshot,
                                       const std::filesystem::path& path) {
  const Bytes options = encode_options(snapshot);
  const std::uint64_t items =
      sizeof(std::uint64_t) + sizeof(ItemRecord) * snapshot.cut.items.size();
  const std::uint64_t chunks = chunks_section_bytes(snapshot);
  const std::uint64_t total =
      kHeader + 4 * kFrame + options.size() + items + chunks + snapshot.cut.state.size();
  auto file = SectionWriter::create(path);
  if (!file) return tl::unexpected(file.error());
  Bytes head;
  ByteWriter out(head);
  out.put(kMagic);
  out.put(kVersion);
  out.put(std::uint32_t{0});
  out.put(total);
  out.put(crc32c(head));
  SectionWriter& writer = **file;
  writer.write(head);
  writer.begin_section(kOptions, options.size());
  writer.write(options);
  writer.end_section();
  writer.begin_section(kItems, items);
  head.clear();
  out.put(static_cast<std::uint64_t>(snapshot.cut.items.size()));
  writer.write(head);
  writer.write({reinterpret_cast<const std::uint8_t*>(snapshot.cut.items.data()),
                sizeof(ItemRecord) * snapshot.cut.items.size()});
  writer.end_section();
  write_chunks(writer, snapshot, chunks);
  writer.begin_section(kState, snapshot.cut.state.size());
  writer.write(snapshot.cut.state);
  writer.end_section();
  return writer.commit();
}

Result<TableSnapshot> read_checkpoint(const std::filesystem::path& path,
                                      const Signature& signature) {
  auto file = SectionReader::open(path);
  if (!file) return tl::unexpected(file.error());
  TableSnapshot snapshot;
  if (auto good = read_all(**file, signature, snapshot); !good) return tl::unexpected(good.error());
  return snapshot;
}

Result<Signature> read_signature(const std::filesystem::path& path) {
  auto file = SectionReader::open(path);
  if (!file) return tl::unexpected(file.error());
  Bytes bytes;
  auto read = read_header(**file).and_then(
      [&] { return read_section(**file, kOptions, "options", bytes); });
  if (!read) return tl::unexpected(read.error());
  ByteReader in(bytes);
  Signature signature;
  in.get(signature.spec_hash);
  auto observation = take_columns(in), step = take_columns(in);
  if (!observation || !step) return (*file)->corrupt("section 'options' names no columns");
  signature.observation = std::move(*observation);
  signature.step = std::move(*step);
  return signature;
}

Result<std::vector<std::string>> restore(Table& table, const std::filesystem::path& path) {
  auto snapshot = read_checkpoint(path, table.signature());
  if (!snapshot) return tl::unexpected(snapshot.error());
  auto notes = table.adopt(*std::move(snapshot));
  if (!notes) return fail(notes.error().code, path.string() + ": " + notes.error().message);
  return notes;
}

}  // namespace troupe::replay
