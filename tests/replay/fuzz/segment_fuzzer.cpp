// libFuzzer target: whatever lies in a segment, the table that names it, with the right size and
// checksum, is refused, or works.
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "replay/checkpoint.hpp"
#include "replay/checksum.hpp"
#include "tests/replay/fuzz/seal.hpp"
#include "tests/replay/fuzz/subject.hpp"

using namespace troupe;
using namespace troupe::replay;
namespace fs = std::filesystem;

namespace {

void require(bool good) {
  if (!good) std::abort();
}

// A table's file and its one segment, in memory where the host has such a folder.
struct Files {
  fs::path folder, table, segment;
  fuzz::Sections sections;
  std::uint32_t number = 0;

  Files() {
    folder = (fs::is_directory("/dev/shm") ? fs::path("/dev/shm") : fs::temp_directory_path()) /
             ("troupe-segment-fuzzer-" + std::to_string(::getpid()));
    fs::create_directories(folder);
    table = folder / "a.table";
    TableOptions options;
    options.capacity = 20;
    options.compression = fuzz::packing();
    const auto made = Table::create(options, fuzz::signature()).value();
    fuzz::feed(*made, 1, 0, 7);
    CheckpointWriter writer({.min_segment_bytes = 1});
    const auto files = writer.write(made->snapshot(), table);
    require(files && files->size() == 2);
    segment = (*files)[1].path;
    number = static_cast<std::uint32_t>(
        std::stoul(segment.stem().extension().string().substr(1), nullptr, 16));
    std::ifstream in(table, std::ios::binary);
    const std::vector<char> bytes{std::istreambuf_iterator<char>(in), {}};
    sections = fuzz::take_apart(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  }
  ~Files() { fs::remove_all(folder); }
};

void write(const fs::path& path, const std::uint8_t* data, std::size_t size) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Files files;
  if (size < 16) return 0;
  // The number of the segment is this process's own.
  std::vector<std::uint8_t> segment(data, data + size);
  std::memcpy(segment.data() + 12, &files.number, sizeof files.number);
  write(files.segment, segment.data(), segment.size());
  // One layout of four columns, one segment: its size and checksum stand after its number.
  fuzz::Sections sections = files.sections;
  constexpr std::size_t kSegment = 8 + 4 * 5 + 8 + 4;
  const std::uint64_t bytes = segment.size();
  const std::uint32_t sum = crc32c(segment);
  std::vector<std::uint8_t>& chunks = sections.sections.at(2).payload;
  std::memcpy(chunks.data() + kSegment, &bytes, sizeof bytes);
  std::memcpy(chunks.data() + kSegment + 8, &sum, sizeof sum);
  const auto whole = fuzz::put_together(std::move(sections));
  write(files.table, whole.data(), whole.size());
  auto snapshot = read_checkpoint(files.table, fuzz::signature());
  if (!snapshot) return 0;
  const auto table = Table::create(snapshot->options, fuzz::signature()).value();
  if (!table->adopt(*std::move(snapshot))) return 0;
  Batch batch(table->batch_columns(), 8);
  for (int i = 0; i < 4; ++i) {
    const auto gathered = table->gather(table->try_sample(8).value(), batch);
    require(gathered || gathered.error().code == ErrorCode::kCorrupt);
    fuzz::feed(*table, 2, 8 * static_cast<std::uint64_t>(i), 8);
  }
  return 0;
}
