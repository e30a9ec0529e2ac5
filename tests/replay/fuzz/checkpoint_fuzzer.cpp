// libFuzzer target: whatever the file, reading and adopting it refuses it or makes a table that
// works on: it takes chunks, gives samples, and its ledger holds.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "replay/checkpoint.hpp"
#include "tests/replay/fuzz/seal.hpp"
#include "tests/replay/fuzz/subject.hpp"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

using namespace troupe;
using namespace troupe::replay;

namespace {

void require(bool good) {
  if (!good) std::abort();
}

void require_ledger(const Table& table) {
  const TableStatistics s = table.statistics();
  require(s.inserted_steps + s.prefilled_steps == s.held_steps + s.removed_steps + s.lost_steps);
  require(s.inserted_items + s.prefilled_items == s.held_items + s.removed_items + s.lost_items);
}

void use(Table& table) {
  require_ledger(table);
  Batch batch(table.batch_columns(), 4);
  for (std::uint32_t worker = 0; worker < 3; ++worker)
    for (std::uint64_t first = 0; first < 40; first += 8) {
      fuzz::feed(table, worker, first, 8);
      if (const auto items = table.try_sample(4)) {
        const auto gathered = table.gather(*items, batch);
        require(gathered || gathered.error().code == ErrorCode::kCorrupt);
        table.update_priorities(batch.keys, std::vector{0.0, 0.5, 1.0, 2.0});
      }
      require_ledger(table);
    }
  for (std::uint32_t worker = 0; worker < 3; ++worker) table.abandon(worker);
  require_ledger(table);
  require(!table.snapshot().cut.state.empty());
}

}  // namespace

// One section changes, or the file as it lies; mostly with its checksums made right again.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t most, unsigned seed) {
  auto parts = fuzz::take_apart(data, size);
  if (seed % 16 == 0 || parts.sections.empty()) return LLVMFuzzerMutate(data, size, most);
  fuzz::Bytes& payload = parts.sections[seed / 16 % parts.sections.size()].payload;
  const std::size_t length = payload.size();
  payload.resize(length + 64);
  payload.resize(LLVMFuzzerMutate(payload.data(), length, payload.size()));
  const fuzz::Bytes bytes = fuzz::put_together(std::move(parts));
  if (bytes.size() > most) return LLVMFuzzerMutate(data, size, most);
  std::memcpy(data, bytes.data(), bytes.size());
  return bytes.size();
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const int descriptor = ::memfd_create("checkpoint", 0);
  static const std::string path = "/proc/self/fd/" + std::to_string(descriptor);
  require(::ftruncate(descriptor, 0) == 0 &&
          ::pwrite(descriptor, data, size, 0) == static_cast<ssize_t>(size));
  auto snapshot = read_checkpoint(path, fuzz::signature());
  if (!snapshot) return 0;
  // The file's own options where a table can be made of them, so that any selectors come up.
  TableOptions options = snapshot->options;
  options.capacity = std::clamp<std::int64_t>(options.capacity, 1, 64);
  options.limiter.min_size = std::clamp<std::int64_t>(options.limiter.min_size, 1, 4);
  options.n_step = std::clamp<std::int64_t>(options.n_step, 1, 100);
  snapshot->options.n_step = options.n_step;
  options.disk = {};  // no file of the input's choice
  auto table = Table::create(options, fuzz::signature());
  if (!table) return 0;
  fuzz::feed(**table, 0, 0, 4);
  const std::uint64_t before = (*table)->statistics().inserted_steps;
  if (!(*table)->adopt(*std::move(snapshot)))
    require((*table)->statistics().inserted_steps == before);
  use(**table);
  return 0;
}
