// Prints what prioritised drawing and updating cost, from ten thousand to ten million items: nodes
// of the sum tree visited per sample beside the bound log2(n) + 2, and time.
// Not a test; run by hand: replay_selector_benchmark [most items, default 10000000].
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <vector>

#include "replay/selectors/prioritised.hpp"

namespace {

using namespace troupe;
using namespace troupe::replay;

constexpr std::uint32_t kCalls = 1000000;

// CPU time in nanoseconds a call: other processes on the machine do not count.
template <class Call>
double nanoseconds_each(std::uint32_t calls, Call call) {
  const std::clock_t start = std::clock();
  for (std::uint32_t i = 0; i < calls; ++i) call(i);
  return 1e9 * static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC / calls;
}

void measure(std::uint32_t items) {
  PrioritisedSelector selector({.priority_exponent = 0.6, .expected_keys = items});
  Random random(1);
  const double insert = nanoseconds_each(
      items, [&](std::uint32_t key) { selector.insert(key, 0.01 + random.uniform()); });

  std::vector<Selector::Key> drawn(kCalls);
  double probabilities = 0;  // used, so that the draws are made
  const std::uint64_t visited = selector.tree().nodes_visited();
  const double sample = nanoseconds_each(kCalls, [&](std::uint32_t i) {
    const auto one = selector.sample(random);
    drawn[i] = one.key;
    probabilities += one.probability;
  });
  std::vector<Selector::Drawn> batch;
  const double together = nanoseconds_each(kCalls / 256,
                                           [&](std::uint32_t) {
                                             batch.clear();
                                             selector.sample_many(random, 256, batch);
                                             probabilities += batch.front().probability;
                                           }) /
                          256;
  const double nodes = static_cast<double>(selector.tree().nodes_visited() - visited) /
                       (kCalls + 256 * (kCalls / 256));
  const double update = nanoseconds_each(
      kCalls, [&](std::uint32_t i) { selector.update(drawn[i], 0.01 + random.uniform()); });

  long double exact = 0;
  for (std::uint32_t key = 0; key < items; ++key)
    exact += static_cast<long double>(selector.tree().mass(key));
  const double drift =
      std::abs(static_cast<double>(static_cast<long double>(selector.tree().total()) / exact - 1));
  std::printf("%10u %10.2f %10.2f %10.0f %10.0f %10.0f %10.0f %12.1e\n", items, nodes,
              std::log2(items) + 2, insert, sample, together, update, drift);
  if (!(probabilities > 0)) std::printf("nothing was drawn\n");
}

}  // namespace

int main(int argc, char** argv) {
  const auto most = static_cast<std::uint32_t>(argc > 1 ? std::atoi(argv[1]) : 10000000);
  std::printf("%10s %10s %10s %10s %10s %10s %12s %10s\n", "items", "nodes", "log2(n)+2",
              "insert ns", "sample ns", "of 256 ns", "update ns", "root drift");
  for (std::uint32_t items = 10000; items <= most; items *= 10) measure(items);
  return 0;
}
