// The chunks section of a table's file, and reading the segments that it names.
#include <algorithm>
#include <cstdio>
#include <string>

#include "replay/checkpoint_parts.hpp"

namespace troupe::replay {
namespace {

using Bytes = std::vector<std::uint8_t>;

constexpr std::uint32_t kChunks = 0x4b4e4843;  // "CHNK"
constexpr std::uint64_t kEntry = 28, kSegmentEntry = 16, kLayoutColumn = 5;
constexpr std::uint32_t kMostLayouts = 4096;
// Blocks of more than one row are far smaller; a larger one would only be asked for by damaged
// bytes.
constexpr std::uint64_t kMostBlock = 1U << 20;

// One chunk that lies in a segment.
struct Elsewhere {
  std::uint32_t segment = 0, offset = 0;
  std::uint64_t length = 0;
  ChunkSlot slot = 0;
  const ChunkLayout* layout = nullptr;
};

// Reads in pieces, so that no more is allocated than the file has.
Result<std::uint64_t> read_count(SectionReader& file, std::uint64_t bytes_each, const char* what) {
  Bytes bytes;
  if (auto good = file.read(sizeof(std::uint64_t), bytes); !good)
    return tl::unexpected(good.error());
  const auto count = ByteReader(bytes).take<std::uint64_t>();
  if (count > file.section_remaining() / bytes_each)
    return file.corrupt(std::string("section 'chunks' says more ") + what +
                        " than its bytes can describe");
  return count;
}

Result<std::vector<const ChunkLayout*>> read_layouts(SectionReader& file,
                                                     const Signature& signature) {
  const std::size_t columns = signature.observation.size() + signature.step.size();
  const auto count =
      read_count(file, std::max<std::uint64_t>(kLayoutColumn * columns, 1), "layouts");
  if (!count) return tl::unexpected(count.error());
  if (*count > kMostLayouts) return file.corrupt("names too many layouts of chunks");
  std::vector<const ChunkLayout*> layouts;
  Bytes bytes;
  for (std::uint64_t i = 0; i < *count; ++i) {
    if (auto good = file.read(kLayoutColumn * columns, bytes); !good)
      return tl::unexpected(good.error());
    ByteReader in(bytes);
    ChunkLayout layout = ChunkLayout::of(signature, {});
    for (ColumnLayout& column : layout.columns) {
      const auto compression = in.take<std::uint8_t>();
      in.get(column.block_rows);
      if (compression > static_cast<std::uint8_t>(Compression::kZstd) || column.block_rows == 0 ||
          column.block_rows > 1U << 16 || (compression != 0 && column.row_bytes == 0) ||
          (compression != 0 && column.block_rows > 1 &&
           std::uint64_t{column.block_rows} * column.row_bytes > kMostBlock))
        return file.corrupt("describes a column's layout that there is not");
      column.compression = static_cast<Compression>(compression);
    }
    layouts.push_back(&ChunkLayout::intern(std::move(layout)));
  }
  return layouts;
}

Result<void> read_segments(SectionReader& file, const std::filesystem::path& path,
                           TableSnapshot& snapshot) {
  const auto count = read_count(file, kSegmentEntry, "segments");
  if (!count) return tl::unexpected(count.error());
  Bytes bytes;
  for (std::uint64_t i = 0; i < *count; ++i) {
    if (auto good = file.read(kSegmentEntry, bytes); !good) return good;
    ByteReader in(bytes);
    SegmentFile segment;
    in.get(segment.number);
    in.get(segment.bytes);
    in.get(segment.crc32c);
    segment.path = segment_path(path, segment.number);
    if (segment.number == 0) return file.corrupt("a segment has no number");
    snapshot.segments.push_back(std::move(segment));
  }
  return {};
}

Result<void> take_record(const SectionReader& file, const Bytes& record, ChunkSlot slot,
                         const ChunkLayout& layout, const ChunkStorage* storage, SavedPlace place,
                         TableSnapshot& snapshot) {
  auto chunk = PackedChunk::parse(record, layout, storage);
  if (!chunk) return file.corrupt(chunk.error().message);
  if (snapshot.cut.chunks[slot].chunk != nullptr) return file.corrupt("two chunks are in one slot");
  (*chunk)->set_saved(place);
  snapshot.cut.chunks.edit(slot).chunk = chunk->get();
  snapshot.cut.keeper->chunks.push_back(*std::move(chunk));
  return {};
}

// One segment from its beginning to its end: every byte counts in its checksum.
Result<void> read_segment(const SegmentFile& segment, std::span<const Elsewhere> chunks,
                          const ChunkStorage* storage, TableSnapshot& snapshot) {
  auto opened = SectionReader::open(segment.path);
  if (!opened) return tl::unexpected(opened.error());
  SectionReader& file = **opened;
  if (file.file_bytes() != segment.bytes)
    return file.corrupt("should have " + std::to_string(segment.bytes) + " bytes but has " +
                        std::to_string(file.file_bytes()));
  Bytes bytes;
  if (auto good = file.read(kSegmentHead, bytes); !good) return good;
  ByteReader head(bytes);
  if (head.take<std::uint64_t>() != kSegmentMagic ||
      head.take<std::uint32_t>() != kSegmentVersion || head.take<std::uint32_t>() != segment.number)
    return file.corrupt("is no segment of this table (wrong head)");
  for (const Elsewhere& chunk : chunks) {
    const std::uint64_t position = file.file_bytes() - file.remaining();
    if (chunk.offset < position) return file.corrupt("two chunks overlap");
    auto good = file.skip(std::min(chunk.offset - position, file.remaining()));
    if (good) good = file.read(chunk.length, bytes);
    if (good)
      good = take_record(file, bytes, chunk.slot, *chunk.layout, storage,
                         {segment.number, chunk.offset}, snapshot);
    if (!good) return good;
  }
  if (auto good = file.skip(file.remaining()); !good) return good;
  if (file.file_checksum() != segment.crc32c) return file.corrupt("fails its checksum");
  return {};
}

Result<void> read_entries(SectionReader& file, const std::vector<const ChunkLayout*>& layouts,
                          const ChunkStorage* storage, TableSnapshot& snapshot,
                          std::vector<Elsewhere>& elsewhere) {
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
    if (auto good = file.read(kEntry, bytes); !good) return good;
    ByteReader in(bytes);
    Elsewhere entry;
    in.get(entry.slot);
    const auto next = in.take<ChunkSlot>();
    const auto layout = in.take<std::uint32_t>();
    in.get(entry.segment);
    in.get(entry.offset);
    in.get(entry.length);
    if (entry.slot >= slots || layout >= layouts.size())
      return file.corrupt("a chunk's slot or layout is wrong");
    entry.layout = layouts[layout];
    chunks.edit(entry.slot).next = next;
    if (entry.segment != 0) {
      elsewhere.push_back(entry);
      continue;
    }
    if (auto good = file.read(entry.length, bytes); !good) return good;
    if (auto good = take_record(file, bytes, entry.slot, *entry.layout, storage, {}, snapshot);
        !good)
      return good;
  }
  return {};
}

}  // namespace

std::filesystem::path segment_path(const std::filesystem::path& table, std::uint32_t number) {
  char name[32];
  std::snprintf(name, sizeof name, ".%08x.chunks", number);
  return table.parent_path() / (table.stem().string() + name);
}

std::uint64_t record_bytes(const PackedChunk& chunk) {
  return PackedChunk::kRecordHead + chunk.bytes();
}

void write_record(SectionWriter& file, const PackedChunk& chunk) {
  Bytes head;
  chunk.append_head(head);
  file.write(head);
  file.write(chunk.payload());
}

ChunkSection::ChunkSection(const TableSnapshot& snapshot, const std::vector<SegmentFile>& segments)
    : snapshot_(snapshot), segments_(segments) {
  snapshot.cut.chunks.runs([&](const StoredChunk* stored, std::size_t count) {
    for (; count > 0; --count, ++stored) {
      if (stored->chunk == nullptr) continue;
      ++held_;
      bytes_ += kEntry + (in_segment(*stored->chunk) ? 0 : record_bytes(*stored->chunk));
      if (std::find(layouts_.begin(), layouts_.end(), &stored->chunk->layout()) == layouts_.end())
        layouts_.push_back(&stored->chunk->layout());
    }
  });
  bytes_ += 4 * sizeof(std::uint64_t) + kSegmentEntry * segments.size();
  for (const ChunkLayout* layout : layouts_) bytes_ += kLayoutColumn * layout->columns.size();
}

bool ChunkSection::in_segment(const PackedChunk& chunk) const {
  const std::uint32_t number = chunk.saved().segment;
  return number != 0 &&
         std::any_of(segments_.begin(), segments_.end(),
                     [&](const SegmentFile& segment) { return segment.number == number; });
}

std::uint32_t ChunkSection::layout_of(const PackedChunk& chunk) const {
  return static_cast<std::uint32_t>(std::find(layouts_.begin(), layouts_.end(), &chunk.layout()) -
                                    layouts_.begin());
}

void ChunkSection::write(SectionWriter& file) const {
  file.begin_section(kChunks, bytes_);
  Bytes head;
  ByteWriter out(head);
  out.put(static_cast<std::uint64_t>(layouts_.size()));
  for (const ChunkLayout* layout : layouts_)
    for (const ColumnLayout& column : layout->columns) {
      out.put(static_cast<std::uint8_t>(column.compression));
      out.put(column.block_rows);
    }
  out.put(static_cast<std::uint64_t>(segments_.size()));
  for (const SegmentFile& segment : segments_) {
    out.put(segment.number);
    out.put(segment.bytes);
    out.put(segment.crc32c);
  }
  out.put(static_cast<std::uint64_t>(snapshot_.cut.chunks.size()));
  out.put(held_);
  file.write(head);
  for (std::size_t slot = 0; slot < snapshot_.cut.chunks.size(); ++slot) {
    const StoredChunk& stored = snapshot_.cut.chunks[slot];
    if (stored.chunk == nullptr) continue;
    const bool elsewhere = in_segment(*stored.chunk);
    const SavedPlace place = elsewhere ? stored.chunk->saved() : SavedPlace{};
    head.clear();
    out.put(static_cast<ChunkSlot>(slot));
    out.put(stored.next);
    out.put(layout_of(*stored.chunk));
    out.put(place.segment);
    out.put(place.offset);
    out.put(record_bytes(*stored.chunk));
    file.write(head);
    if (!elsewhere) write_record(file, *stored.chunk);
  }
  file.end_section();
}

Result<void> read_chunks(SectionReader& file, const std::filesystem::path& path,
                         TableSnapshot& snapshot, const ChunkStorage* storage) {
  snapshot.cut.keeper = std::make_shared<CutKeeper>();
  if (auto good = file.begin_section(kChunks, "chunks"); !good) return good;
  const auto layouts = read_layouts(file, snapshot.signature);
  if (!layouts) return tl::unexpected(layouts.error());
  if (auto good = read_segments(file, path, snapshot); !good) return good;
  std::vector<Elsewhere> elsewhere;
  if (auto good = read_entries(file, *layouts, storage, snapshot, elsewhere); !good) return good;
  if (auto good = file.end_section(); !good) return good;
  std::sort(elsewhere.begin(), elsewhere.end(), [](const Elsewhere& a, const Elsewhere& b) {
    return std::pair(a.segment, a.offset) < std::pair(b.segment, b.offset);
  });
  std::size_t taken = 0;
  for (const SegmentFile& segment : snapshot.segments) {
    const auto [first, last] = std::equal_range(
        elsewhere.begin(), elsewhere.end(), Elsewhere{.segment = segment.number},
        [](const Elsewhere& a, const Elsewhere& b) { return a.segment < b.segment; });
    taken += static_cast<std::size_t>(last - first);
    if (auto good = read_segment(segment, {first, last}, storage, snapshot); !good) return good;
  }
  if (taken != elsewhere.size()) return file.corrupt("a chunk lies in a segment that is not named");
  return {};
}

}  // namespace troupe::replay
