// Which chunks are linked, and which are written.
#include <unistd.h>

#include <algorithm>
#include <map>
#include <random>
#include <utility>

#include "replay/checkpoint.hpp"
#include "replay/checkpoint_parts.hpp"

namespace troupe::replay {
namespace {

// A checkpoint links at most about so many segments, or as many of half the largest size as it
// takes.
constexpr std::uint64_t kMostSegments = 64;
// Where a segment was linked before: folders go, the newest ones last.
constexpr std::size_t kPlaces = 4;

template <class Visit>
void visit_chunks(const StoreCut& cut, Visit visit) {
  cut.chunks.runs([&](const StoredChunk* stored, std::size_t count) {
    for (; count > 0; --count, ++stored)
      if (stored->chunk != nullptr) visit(*stored->chunk);
  });
}

}  // namespace

CheckpointWriter::CheckpointWriter(CheckpointWriterOptions options,
                                   std::function<std::uint32_t()> draw)
    : options_{options.min_segment_bytes,
               std::min(options.max_segment_bytes, std::uint64_t{0xffffffff})},
      draw_(draw ? std::move(draw) : [] { return std::random_device{}(); }) {}

void CheckpointWriter::go_on(const std::filesystem::path& path, std::vector<SegmentFile> segments) {
  const std::lock_guard lock(mutex_);
  std::vector<Segment>& own = segments_[path.stem().string()];
  own.clear();
  for (SegmentFile& file : segments) {
    const std::filesystem::path place = file.path;
    own.push_back({std::move(file), {place}});
  }
}

// Those of the table itself first: they were linked last.
std::vector<CheckpointWriter::Segment> CheckpointWriter::known_segments(
    const std::string& table) const {
  std::vector<Segment> known;
  const auto add = [&](const std::vector<Segment>& segments) {
    for (const Segment& segment : segments)
      if (!has_number(known, segment.file.number)) known.push_back(segment);
  };
  if (const auto own = segments_.find(table); own != segments_.end()) add(own->second);
  for (const auto& [name, segments] : segments_) add(segments);
  return known;
}

// Numbers are drawn, so that a chunk's place from another writer means nothing to this one.
std::uint32_t CheckpointWriter::free_number(const std::vector<Segment>& used) const {
  for (;;) {
    const std::uint32_t number = draw_();
    const bool known = has_number(used, number) ||
                       std::any_of(segments_.begin(), segments_.end(), [&](const auto& table) {
                         return has_number(table.second, number);
                       });
    if (number != 0 && !known) return number;
  }
}

bool CheckpointWriter::has_number(const std::vector<Segment>& segments, std::uint32_t number) {
  return std::any_of(segments.begin(), segments.end(),
                     [&](const Segment& one) { return one.file.number == number; });
}

bool CheckpointWriter::link(Segment& segment, const std::filesystem::path& path) const {
  const std::filesystem::path to = segment_path(path, segment.file.number);
  for (std::size_t i = segment.places.size(); i-- > 0;) {
    if (::link(segment.places[i].c_str(), to.c_str()) != 0) continue;
    segment.file.path = to;
    segment.places.push_back(to);
    if (segment.places.size() > kPlaces) segment.places.erase(segment.places.begin());
    return true;
  }
  return false;
}

Result<void> CheckpointWriter::write_segments(const std::vector<const PackedChunk*>& chunks,
                                              const std::filesystem::path& path,
                                              std::vector<Segment>& used) {
  std::vector<std::pair<const PackedChunk*, SavedPlace>> placed;
  for (std::size_t first = 0; first < chunks.size();) {
    SegmentFile file{.number = free_number(used), .path = {}};
    file.path = segment_path(path, file.number);
    auto created = SectionWriter::create(file.path);
    if (!created) return tl::unexpected(created.error());
    SectionWriter& writer = **created;
    std::vector<std::uint8_t> head;
    ByteWriter out(head);
    out.put(kSegmentMagic);
    out.put(kSegmentVersion);
    out.put(file.number);
    writer.write(head);
    placed.clear();
    for (; first < chunks.size() &&
           (placed.empty() ||
            writer.written() + record_bytes(*chunks[first]) <= options_.max_segment_bytes);
         ++first) {
      placed.emplace_back(chunks[first],
                          SavedPlace{file.number, static_cast<std::uint32_t>(writer.written())});
      write_record(writer, *chunks[first]);
    }
    const auto bytes = writer.commit();
    if (!bytes) return tl::unexpected(bytes.error());
    file.bytes = *bytes;
    file.crc32c = writer.file_checksum();
    for (const auto& [chunk, place] : placed) chunk->set_saved(place);
    const std::filesystem::path place = file.path;
    used.push_back({std::move(file), {place}});
  }
  return {};
}

Result<std::vector<CheckpointWriter::File>> CheckpointWriter::write(
    const TableSnapshot& snapshot, const std::filesystem::path& path) {
  const std::lock_guard lock(mutex_);
  std::map<std::uint32_t, std::uint64_t> live;  // bytes by segment
  std::uint64_t total = 0;
  visit_chunks(snapshot.cut, [&](const PackedChunk& chunk) {
    live[chunk.saved().segment] += record_bytes(chunk);
    total += record_bytes(chunk);
  });
  // Small segments are written anew with what has come, so that they never get many.
  const std::uint64_t least = std::max(
      options_.min_segment_bytes, std::min(total / kMostSegments, options_.max_segment_bytes / 2));
  const std::string name = path.stem().string();
  std::vector<Segment> used;
  for (Segment& segment : known_segments(name)) {
    const auto found = live.find(segment.file.number);
    if (found != live.end() && segment.file.bytes >= least &&
        2 * found->second >= segment.file.bytes && link(segment, path))
      used.push_back(segment);
  }
  const std::size_t linked = used.size();
  std::vector<const PackedChunk*> fresh;
  std::uint64_t fresh_bytes = 0;
  visit_chunks(snapshot.cut, [&](const PackedChunk& chunk) {
    if (has_number(used, chunk.saved().segment)) return;
    fresh.push_back(&chunk);
    fresh_bytes += record_bytes(chunk);
  });
  if (fresh_bytes >= least)
    if (auto good = write_segments(fresh, path, used); !good) return tl::unexpected(good.error());
  std::vector<SegmentFile> files;
  files.reserve(used.size());
  for (const Segment& segment : used) files.push_back(segment.file);
  auto table = write_table(snapshot, path, files);
  if (!table) return tl::unexpected(table.error());
  // What this cut does not need, no later one of this table does.
  segments_[name] = std::move(used);
  std::vector<File> written{{path, table->bytes, table->crc32c, false}};
  for (std::size_t i = 0; i < files.size(); ++i)
    written.push_back({files[i].path, files[i].bytes, files[i].crc32c, i < linked});
  return written;
}

}  // namespace troupe::replay
