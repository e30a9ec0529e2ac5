// Decides when a table takes inserts and gives samples, so that each item is sampled
// `samples_per_insert` times on average. One number explains it: cursor = inserts x
// samples_per_insert - samples. Pure arithmetic in whole calls: no clock, no lock, no waiting; the
// table asks under its lock.
//
// The same rule as SampleToInsertRatio of dm-reverb (github.com/google-deepmind/reverb): inserts
// stop where the cursor would pass max_diff, samples where it would fall below min_diff, and no
// sample is given before the table holds min_size items.
//
//      min_diff = SPI x min_size - error_buffer          max_diff = SPI x min_size + error_buffer
//   ──────────────────┤                     cursor                     ├──────────────────▶
//      samples wait   │◀─ sampling lowers it by 1, inserting raises ─▶ │   inserts wait
//                                             it by SPI
//
// One exception: where items leave by being drawn or for their bytes, fewer than min_size may be
// held again. Then nothing can be sampled, and inserts pass whatever the cursor says.
//
// A queue or a stack instead holds at most `size` items, each of which leaves with its only draw:
// inserts wait while they would not fit, samples while there are not enough.
//
// With an allowance the ratio is kept elsewhere, over several tables: inserts wait beyond the
// number that was allowed, and samples pass as soon as an item is held.
#pragma once

#include <cstdint>
#include <string>

#include "replay/bytes.hpp"

namespace troupe::replay {

enum class LimiterKind : std::uint8_t { kRatio, kQueue, kStack, kAllowance };
const char* name_of(LimiterKind kind);

struct LimiterOptions {
  std::int64_t min_size = 1;      // items held before the first sample
  double samples_per_insert = 0;  // SPI; 0: min_size is the only rule
  double error_buffer = 0;        // in samples; > 0 unless SPI is 0
  // All but a ratio leave the fields above as they are; table_types.hpp makes queues and stacks.
  LimiterKind kind = LimiterKind::kRatio;
  std::int64_t size = 0;  // items that a queue or stack holds

  bool is_ratio() const { return kind == LimiterKind::kRatio; }
  bool is_allowance() const { return kind == LimiterKind::kAllowance; }
  double min_diff() const {
    return samples_per_insert * static_cast<double>(min_size) - error_buffer;
  }
  double max_diff() const {
    return samples_per_insert * static_cast<double>(min_size) + error_buffer;
  }
  bool operator==(const LimiterOptions&) const = default;
};

class RateLimiter {
 public:
  explicit RateLimiter(const LimiterOptions& options) : options_(options) {}

  // Why n inserts at once would wait for ever; empty when they would not.
  std::string insert_refusal(std::uint64_t n) const;
  // n = 0 is always allowed.
  bool can_insert(std::uint64_t n) const;
  bool can_sample(std::uint64_t n) const;
  // The caller has asked before, or knowingly goes past the limits.
  void commit_insert(std::uint64_t n);
  // n items that came without waiting and are owed no samples: they are held and meet min_size, and
  // the cursor stands as if they had been inserted and sampled in balance, so up to min_size it
  // rises by SPI an item and beyond it stays. measured_spi counts them like any insert.
  void commit_balanced(std::uint64_t n);
  void commit_sample(std::uint64_t n);
  // n items left the table: counts against min_size and the size of a queue only.
  void commit_remove(std::uint64_t n);
  // Inserts, committed ones included, that an allowance lets pass in all; none at first, and again
  // none after a load. No effect on other kinds.
  void allow(std::uint64_t inserts) { allowance_ = inserts; }

  // Why n inserts or samples would wait, with the numbers; empty when they would not.
  std::string insert_block_reason(std::uint64_t n) const;
  std::string sample_block_reason(std::uint64_t n) const;
  // One line for telemetry: cursor, band and what waits.
  std::string state_text() const;

  double cursor() const;
  std::uint64_t inserts() const { return inserts_; }
  std::uint64_t samples() const { return samples_; }
  std::uint64_t held() const { return inserts_ - removed_; }
  // Samples per insert really given since min_size items were inserted; 0 before.
  double measured_spi() const;
  const LimiterOptions& options() const { return options_; }

  // Counts, options and cursor. load returns whether the saved options differ from these; these
  // then win, and the cursor is moved so that nothing waits for what was owed under the old ones:
  // to SPI x held items before min_size, else as far from SPI x min_size as it was, within the new
  // error buffer.
  void save(ByteWriter& out) const;
  bool load(ByteReader& in);

 private:
  bool starved() const;  // the exception above

  LimiterOptions options_;
  std::uint64_t inserts_ = 0, samples_ = 0, removed_ = 0;
  double shift_ = 0;  // of the cursor, from balanced items or a load with changed options
  std::uint64_t allowance_ = 0;
};

}  // namespace troupe::replay
