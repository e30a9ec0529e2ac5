// The checkpoint format of checkpoint.hpp, version 4.
#include "replay/checkpoint.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "replay/bytes.hpp"
#include "replay/checkpoint_parts.hpp"
#include "replay/checksum.hpp"
#include "replay/file.hpp"

namespace troupe::replay {
namespace {

constexpr std::uint64_t kMagic = 0x454c424154505254;  // "TRPTABLE"
constexpr std::uint32_t kVersion = 4;
constexpr std::uint64_t kHeader = 28, kFrame = 16;  // bytes around the sections, and around each
constexpr std::uint32_t kOptions = 0x5354504f, kItems = 0x4d455449,
                        kState = 0x54415453;  // "OPTS", "ITEM", "STAT"; "CHNK" is ChunkSection's

using Bytes = std::vector<std::uint8_t>;

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

// The records one by one in pieces: they need no second copy of the section.
Result<void> read_items(SectionReader& file, TableSnapshot& snapshot) {
  if (auto good = file.begin_section(kItems, "items"); !good) return good;
  Bytes bytes;
  if (auto good = file.read(sizeof(std::uint64_t), bytes); !good) return good;
  const auto count = ByteReader(bytes).take<std::uint64_t>();
  if (count != file.section_remaining() / sizeof(ItemRecord))
    return file.corrupt("section 'items' is malformed");
  constexpr std::uint64_t kPiece = CowVector<ItemRecord>::kBlock;
  for (std::uint64_t done = 0; done < count; done += kPiece) {
    const std::uint64_t piece = std::min(kPiece, count - done);
    if (auto good = file.read(piece * sizeof(ItemRecord), bytes); !good) return good;
    for (std::uint64_t i = 0; i < piece; ++i) {
      ItemRecord record;
      std::memcpy(static_cast<void*>(&record), bytes.data() + i * sizeof record, sizeof record);
      snapshot.cut.items.push_back(record);
    }
  }
  return file.end_section();
}

Result<void> read_all(SectionReader& file, const std::filesystem::path& path,
                      const Signature& signature, const ChunkStorage* storage,
                      TableSnapshot& snapshot) {
  Bytes bytes;
  if (auto good = read_header(file); !good) return good;
  if (auto good = read_section(file, kOptions, "options", bytes); !good) return good;
  if (auto good = decode_options(file, bytes, signature, snapshot); !good) return good;
  if (auto good = read_items(file, snapshot); !good) return good;
  if (auto good = read_chunks(file, path, snapshot, storage); !good) return good;
  if (auto good = read_section(file, kState, "state", snapshot.cut.state); !good) return good;
  if (file.remaining() != 0) return file.corrupt("has bytes after its last section");
  return {};
}

}  // namespace

Result<WrittenTable> write_table(const TableSnapshot& snapshot, const std::filesystem::path& path,
                                 const std::vector<SegmentFile>& segments) {
  const Bytes options = encode_options(snapshot);
  const std::uint64_t items =
      sizeof(std::uint64_t) + sizeof(ItemRecord) * snapshot.cut.items.size();
  const ChunkSection chunks(snapshot, segments);
  const std::uint64_t total =
      kHeader + 4 * kFrame + options.size() + items + chunks.bytes() + snapshot.cut.state.size();
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
  snapshot.cut.items.runs([&](const ItemRecord* records, std::size_t count) {
    writer.write({reinterpret_cast<const std::uint8_t*>(records), count * sizeof(ItemRecord)});
  });
  writer.end_section();
  chunks.write(writer);
  writer.begin_section(kState, snapshot.cut.state.size());
  writer.write(snapshot.cut.state);
  writer.end_section();
  auto bytes = writer.commit();
  if (!bytes) return tl::unexpected(bytes.error());
  return WrittenTable{*bytes, writer.file_checksum()};
}

Result<std::uint64_t> write_checkpoint(const TableSnapshot& snapshot,
                                       const std::filesystem::path& path) {
  return write_table(snapshot, path, {}).map([](const WrittenTable& table) { return table.bytes; });
}

Result<TableSnapshot> read_checkpoint(const std::filesystem::path& path, const Signature& signature,
                                      const ChunkStorage* storage) {
  auto file = SectionReader::open(path);
  if (!file) return tl::unexpected(file.error());
  TableSnapshot snapshot;
  if (auto good = read_all(**file, path, signature, storage, snapshot); !good)
    return tl::unexpected(good.error());
  return snapshot;
}

Result<Signature> read_signature(const std::filesystem::path& path) {
  auto file = SectionReader::open(path);
  if (!file) return tl::unexpected(file.error());
  Bytes bytes;
  auto read = read_header(**file).and_then(
      [&] { return read_section(**file, kOptions, "options", bytes); });
  if (!read) return tl::unexpected(read.error());
  if (auto signature = take_signature(bytes)) return *std::move(signature);
  return (*file)->corrupt("section 'options' names no columns");
}

Result<std::vector<std::string>> restore(Table& table, const std::filesystem::path& path) {
  auto snapshot = read_checkpoint(path, table.signature(), table.storage().get());
  if (!snapshot) return tl::unexpected(snapshot.error());
  std::vector<SegmentFile> segments = std::move(snapshot->segments);
  auto notes = table.adopt(*std::move(snapshot));
  if (!notes) return fail(notes.error().code, path.string() + ": " + notes.error().message);
  table.checkpoint_writer().go_on(path, std::move(segments));
  return notes;
}

}  // namespace troupe::replay
