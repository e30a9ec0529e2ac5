// Writes the fuzz targets' first inputs: replay_make_corpus FOLDER makes FOLDER/chunk and
// FOLDER/checkpoint.
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

bool write_checkpoints(const fs::path& folder) {
  TableOptions plain;
  plain.capacity = 20;
  plain.n_step = 3;
  bool good = write_table(queue_options(plain, 20), folder / "queue") &&
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
  fs::create_directories(folder / "checkpoint");
  if (write_chunks(folder / "chunk") && write_checkpoints(folder / "checkpoint")) return 0;
  std::fprintf(stderr, "cannot write the corpus to %s\n", folder.c_str());
  return 1;
}
