#include "learners/data/epoch_order.hpp"

#include <algorithm>
#include <iterator>
#include <numeric>

#include "envs/spec/random.hpp"

namespace troupe::learners::data {
namespace {

// Fisher and Yates; std::shuffle's order differs between standard libraries.
template <class Iterator>
void mix(Iterator begin, Iterator end, Random& random) {
  for (auto n = std::distance(begin, end); n > 1; --n)
    std::iter_swap(begin + (n - 1), begin + static_cast<std::ptrdiff_t>(
                                                random.below(static_cast<std::uint64_t>(n))));
}

}  // namespace

EpochOrder::EpochOrder(const OrderOptions& options, std::uint64_t epoch) {
  indices_.resize(static_cast<std::size_t>(options.size));
  std::iota(indices_.begin(), indices_.end(), 0);
  if (!options.shuffle) return;
  Random random(stream_seed(options.seed, "epoch", epoch));
  if (options.window <= 0) {
    mix(indices_.begin(), indices_.end(), random);
    return;
  }

  std::vector<std::size_t> files(options.file_starts.size());
  std::iota(files.begin(), files.end(), std::size_t{0});
  mix(files.begin(), files.end(), random);
  auto to = indices_.begin();
  for (const std::size_t file : files) {
    const std::int64_t begin = options.file_starts[file];
    const std::int64_t end =
        file + 1 < options.file_starts.size() ? options.file_starts[file + 1] : options.size;
    for (std::int64_t index = begin; index < end; ++index) *to++ = index;
  }
  for (std::int64_t at = 0; at < options.size; at += options.window)
    mix(indices_.begin() + at, indices_.begin() + std::min(options.size, at + options.window),
        random);
}

}  // namespace troupe::learners::data
