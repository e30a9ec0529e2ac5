// Writes the fuzz targets' first inputs: replay_make_corpus FOLDER makes a folder of the name of
// each target in it.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "replay/checkpoint.hpp"
#include "replay/codec.hpp"
#include "tests/replay/fuzz/subject.hpp"

namespace {

using namespace troupe;
using namespace troupe::replay;
namespace fs = std::filesystem;

bool write_chunks(const fs::path& folder) {
  for (std::uint32_t steps = 1; steps <= 4; ++steps)
    for (const auto end :
         {EpisodeEnd::kContinues, EpisodeEnd::kTerminated, EpisodeEnd::kTruncated}) {
      const auto bytes =
          encode(*fuzz::chunk_of(
                     {.worker = 1, .sequence = steps, .episode = 2, .steps = steps, .end = end}),
                 fuzz::signature());
      std::ofstream file(
          folder / (std::to_string(steps) + "-" + std::to_string(static_cast<int>(end))),
          std::ios::binary);
      if (!file.write(reinterpret_cast<const char*>(bytes.data()),
                      static_cast<std::streamsize>(bytes.size())))
        return false;
    }
  return true;
}

bool write_table(const TableOptions& options, const fs::path& path) {
  const auto table = Table::create(options, fuzz::signature()).value();
  for (std::uint32_t worker = 0; worker < 2; ++worker) fuzz::feed(*table, worker, 0, 7);
  static_cast<void>(table->try_sample(4));
  return write_checkpoint(table->snapshot(), path).has_value();
}

bool write_bytes(const fs::path& path, const std::vector<std::uint8_t>& bytes) {
  std::ofstream file(path, std::ios::binary);
  return static_cast<bool>(file.write(reinterpret_cast<const char*>(bytes.data()),
                                      static_cast<std::streamsize>(bytes.size())));
}

bool write_records(const fs::path& folder) {
  const ChunkLayout& layout = ChunkLayout::of(fuzz::signature(), fuzz::packing());
  bool good = true;
  for (const std::uint32_t steps : {1U, 3U, 40U}) {
    const PackedPtr chunk = PackedChunk::pack(
        *fuzz::chunk_of({.worker = 1, .steps = steps, .end = EpisodeEnd::kTruncated}), layout);
    std::vector<std::uint8_t> record;
    chunk->append_head(record);
    record.insert(record.end(), chunk->payload().begin(), chunk->payload().end());
    good = good && write_bytes(folder / std::to_string(steps), record);
  }
  return good;
}

bool write_segments(const fs::path& folder) {
  for (const bool packed : {false, true}) {
    TableOptions options;
    options.capacity = 20;
    if (packed) options.compression = fuzz::packing();
    const auto table = Table::create(options, fuzz::signature()).value();
    fuzz::feed(*table, 1, 0, 7);
    CheckpointWriter writer({.min_segment_bytes = 1});
    const auto files = writer.write(table->snapshot(), folder / "scratch.table");
    if (!files || files->size() != 2) return false;
    fs::rename((*files)[1].path, folder / (packed ? "packed" : "plain"));
    fs::remove((*files)[0].path);
  }
  return true;
}

bool write_checkpoints(const fs::path& folder) {
  TableOptions plain;
  plain.capacity = 20;
  plain.n_step = 3;
  TableOptions packed = plain;
  packed.compression = fuzz::packing();
  bool good = write_table(packed, folder / "packed") &&
              write_table(queue_options(plain, 20), folder / "queue") &&
              write_table(stack_options(plain, 20), folder / "stack");
  for (const std::string_view name : selector_names()) {
    TableOptions options = plain;
    options.selector = name;
    good = good && write_table(options, folder / std::string(name));
    options.max_times_sampled = 2;
    options.capacity = 6;
    options.remover = name;
    options.limiter = {.min_size = 3, .samples_per_insert = 1, .error_buffer = 40};
    good = good && write_table(options, folder / (std::string(name) + "-remover"));
  }
  return good;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: replay_make_corpus FOLDER\n", stderr);
    return 2;
  }
  const fs::path folder = argv[1];
  fs::create_directories(folder / "chunk");
  for (const char* name : {"chunk", "checkpoint", "record", "segment"})
    fs::create_directories(folder / name);
  if (write_chunks(folder / "chunk") && write_checkpoints(folder / "checkpoint") &&
      write_records(folder / "record") && write_segments(folder / "segment"))
    return 0;
  std::fprintf(stderr, "cannot write the corpus to %s\n", folder.c_str());
  return 1;
}
