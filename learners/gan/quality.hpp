// How good generated pictures are, from a classifier's features and probabilities. Which classifier
// that was is part of every figure's name: only Inception's features give what the literature calls
// FID. Values of one owner; torch-free.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "envs/spec/result.hpp"

namespace troupe::learners {

// Mean and covariance of feature vectors, summed in double.
class FeatureStatistics {
 public:
  explicit FeatureStatistics(std::int64_t features);

  // Rows [n][features]. kInvalidArgument for another width, kNotFinite naming the row.
  Result<void> add(std::span<const float> rows);
  void merge(const FeatureStatistics& other);

  std::int64_t features() const { return features_; }
  std::int64_t count() const { return count_; }
  std::vector<double> mean() const;
  std::vector<double> covariance() const;  // [features][features], divided by count - 1

 private:
  std::int64_t features_, count_ = 0;
  std::vector<double> sum_, products_;  // products_: upper triangle of the sums of x y^T
};

// Frechet distance between the normal distributions with these moments (Heusel et al. 2017,
// arXiv:1706.08500): |m1 - m2|^2 + tr(C1 + C2 - 2 (C1 C2)^(1/2)), never below 0. kInvalidArgument
// for different widths, or when a side has fewer than 2 rows: with fewer rows than features the
// covariance is singular and the figure only compares with others of as many rows.
Result<double> frechet_distance(const FeatureStatistics& a, const FeatureStatistics& b);

// exp of the mean KL divergence of p(y | x) from p(y) (Salimans et al. 2016, arXiv:1606.03498),
// over rows [n][classes] of probabilities, in `splits` parts of equal size: mean and standard
// deviation over the parts. kInvalidArgument when a part would be empty.
struct InceptionScore {
  double mean = 0, deviation = 0;
};
Result<InceptionScore> inception_score(std::span<const float> probabilities, std::int64_t classes,
                                       std::int64_t splits);

// How much pictures of one class differ from each other: the variance of each pixel over a class's
// pictures, averaged over pixels, then over classes. A generator that makes one picture a class has
// 0, whatever its scores say.
class IntraClassVariance {
 public:
  IntraClassVariance(std::int64_t classes, std::int64_t pixels);
  // Pictures [labels.size()][pixels] and their classes. kInvalidArgument as above.
  Result<void> add(std::span<const float> pictures, std::span<const std::int64_t> labels);
  // Of one class, divided by its pictures - 1; 0 with fewer than two.
  double of_class(std::int64_t label) const;
  // Over the classes that have two pictures or more; 0 without one.
  double mean() const;

 private:
  std::int64_t classes_, pixels_;
  std::vector<std::int64_t> counts_;   // [class]
  std::vector<double> sum_, squares_;  // [class][pixel]
};

}  // namespace troupe::learners
