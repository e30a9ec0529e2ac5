// Running mean and variance of observations: environment actors gather deltas, the learner merges
// them, everyone scales with the published arrays. Plain values; one owner each.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "envs/spec/result.hpp"

namespace troupe::models {

// Names of the published arrays in a ParameterSet, each [observation size].
inline const std::string kNormaliserMean = "normaliser.mean";
inline const std::string kNormaliserVariance = "normaliser.variance";

// Count, mean and sum of squared deviations per element, in double (Welford 1962; merge of Chan,
// Golub and LeVeque 1979). Merging is order-dependent only in rounding.
class RunningStatistics {
 public:
  explicit RunningStatistics(std::int64_t size = 0);

  std::int64_t size() const { return static_cast<std::int64_t>(mean_.size()); }
  std::uint64_t count() const { return count_; }
  const std::vector<double>& mean() const { return mean_; }
  const std::vector<double>& squared_deviations() const { return squares_; }
  // Population variance; 1 while fewer than two observations are known.
  std::vector<double> variance() const;

  // One observation of size() values. kNotFinite leaves the statistics as they were.
  Result<void> add(std::span<const float> observation);
  // kInvalidArgument when the sizes differ.
  Result<void> merge(const RunningStatistics& other);
  void clear();

  // A delta on the wire: versioned, with a checksum; decode checks sizes before it allocates and
  // refuses values that are not finite or variances below zero (kCorrupt).
  std::vector<std::uint8_t> encode() const;
  static Result<RunningStatistics> decode(std::span<const std::uint8_t> bytes);

  bool operator==(const RunningStatistics&) const = default;

 private:
  std::uint64_t count_ = 0;
  std::vector<double> mean_, squares_;
};

// (x - mean) / sqrt(variance + 1e-8), clipped to +-10, in float: the one formula of learner and
// actors.
class ObservationScale {
 public:
  ObservationScale(std::span<const float> mean, std::span<const float> variance);
  // observations [K, size] -> scaled [K, size] (room for at least that); may be the same memory.
  void apply(std::span<const float> observations, std::span<float> scaled) const;

 private:
  std::vector<float> mean_, inverse_deviation_;
};

}  // namespace troupe::models
