// The roof of the learner's benchmark: the reference step's matrix products, each on the fastest
// library at hand. Used by one thread at a time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::learners {

// The middle of three or more times, of any number of at least one.
double median(std::vector<double> values);

// Row-major result [m, n] = left * right, summed over k; a transposed operand lies in memory as
// [k, m] or [n, k].
struct Product {
  std::string name;  // "critic.linear_1 forward"
  std::int64_t m = 0, n = 0, k = 0;
  bool left_transposed = false, right_transposed = false;
  int count = 0;  // in one step

  double flop() const {
    return 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  }
};

// The list that learners/benchmark.hpp describes.
std::vector<Product> reference_products();

struct ProductTime {
  double seconds = 0;
  std::string library;  // the fastest: "mkl", "onednn" or "eigen"
};

// Median of `repeats` runs on each library; the smallest of the medians. A library whose result is
// wrong has no part. Eigen works with one thread, the others with at::set_num_threads' number.
ProductTime time_product(const Product& product, int repeats);

// Median time of LibTorch's sgemm alone; infinite if its result is wrong.
double time_mkl(const Product& product, int repeats);

// Whether oneDNN is installed and multiplies rightly.
bool onednn_found();

}  // namespace troupe::learners
