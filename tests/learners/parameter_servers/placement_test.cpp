// Placement of parameters on servers.
#include "learners/parameter_servers/placement.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "envs/spec/random.hpp"

namespace troupe::learners {
namespace {

TEST(Placement, PutsTheLargestFirstOnTheEmptiest) {
  const std::int64_t bytes[] = {10, 70, 40, 30, 50};
  const Placement placement = place_by_bytes(bytes, 2);
  // 70 | 50, 40 | 30 joins 70, 10 joins 90: 100 and 100.
  EXPECT_EQ(placement.server_of, (std::vector<int>{1, 0, 1, 0, 1}));
  EXPECT_EQ(placement.bytes, (std::vector<std::int64_t>{100, 100}));
  EXPECT_EQ(placement.imbalance(), 1);
  EXPECT_EQ(place_by_bytes(bytes, 1).server_of, std::vector<int>(5, 0));
}

TEST(Placement, SaysHowUnevenItIs) {
  const std::int64_t bytes[] = {90, 10};
  EXPECT_DOUBLE_EQ(place_by_bytes(bytes, 2).imbalance(), 1.8);
  EXPECT_DOUBLE_EQ(place_by_bytes(bytes, 4).imbalance(), 3.6);  // two servers hold nothing
}

TEST(Placement, IsNeverFurtherOffThanOneParameter) {
  Random random(1);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::int64_t> bytes(1 + random.below(40));
    for (std::int64_t& size : bytes) size = static_cast<std::int64_t>(random.below(1000)) + 1;
    const int servers = static_cast<int>(random.below(8)) + 1;
    const Placement placement = place_by_bytes(bytes, servers);
    const auto [low, high] = std::minmax_element(placement.bytes.begin(), placement.bytes.end());
    EXPECT_LE(*high - *low, *std::max_element(bytes.begin(), bytes.end()));
    EXPECT_EQ(std::accumulate(placement.bytes.begin(), placement.bytes.end(), std::int64_t{0}),
              std::accumulate(bytes.begin(), bytes.end(), std::int64_t{0}));
  }
}

}  // namespace
}  // namespace troupe::learners
