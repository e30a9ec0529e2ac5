// Shared by the selectors' tests: counting draws, Pearson's statistic, saved states.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "replay/selector.hpp"

namespace troupe::replay::testing {

inline std::vector<std::uint8_t> saved(const Selector& selector) {
  std::vector<std::uint8_t> bytes;
  ByteWriter out(bytes);
  selector.save(out);
  return bytes;
}

// How often each of `keys` keys is drawn; every draw must name one of them.
inline std::vector<double> count_draws(Selector& selector, std::size_t keys, int draws,
                                       Random& random) {
  std::vector<double> counts(keys);
  for (int i = 0; i < draws; ++i) {
    const auto drawn = selector.sample(random);
    if (drawn.key >= keys) {
      ADD_FAILURE() << "drew key " << drawn.key << " of " << keys;
      break;
    }
    ++counts[drawn.key];
  }
  return counts;
}

// Pearson's chi-square of `counts` against exact probabilities, which sum to 1. What has
// probability 0 must not have been drawn.
inline double chi_square(const std::vector<double>& counts,
                         const std::vector<double>& probabilities) {
  double draws = 0, sum = 0;
  for (const double count : counts) draws += count;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const double expected = draws * probabilities[i];
    if (expected == 0)
      EXPECT_EQ(counts[i], 0) << "key " << i;
    else
      sum += (counts[i] - expected) * (counts[i] - expected) / expected;
  }
  return sum;
}

// The value that chi-square with so many degrees of freedom passes once in a thousand
// (Wilson and Hilferty, 1931; within 1 % of the tables from 5 degrees on).
inline double chi_square_limit(std::size_t degrees) {
  const double n = static_cast<double>(degrees), z = 3.0902;
  const double root = 1 - 2 / (9 * n) + z * std::sqrt(2 / (9 * n));
  return n * root * root * root;
}

}  // namespace troupe::replay::testing
