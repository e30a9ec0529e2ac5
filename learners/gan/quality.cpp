#include "learners/gan/quality.hpp"

#include <Eigen/Eigenvalues>

#include <algorithm>
#include <cmath>
#include <string>

namespace troupe::learners {
namespace {

using Matrix = Eigen::MatrixXd;

// Square root of a symmetric matrix without its negative eigenvalues, which are rounding.
Matrix square_root(const Matrix& symmetric) {
  const Eigen::SelfAdjointEigenSolver<Matrix> solver(symmetric);
  return solver.eigenvectors() * solver.eigenvalues().cwiseMax(0).cwiseSqrt().asDiagonal() *
         solver.eigenvectors().transpose();
}

Matrix matrix_of(const std::vector<double>& values, std::int64_t size) {
  return Eigen::Map<const Matrix>(values.data(), size, size);  // symmetric: either order
}

Result<std::int64_t> rows_of(std::size_t values, std::int64_t width) {
  if (width < 1 || values % static_cast<std::size_t>(width) != 0)
    return fail(ErrorCode::kInvalidArgument,
                std::to_string(values) + " values are no rows of " + std::to_string(width));
  return static_cast<std::int64_t>(values) / width;
}

Result<void> all_finite(std::span<const float> values, std::int64_t width) {
  for (std::size_t i = 0; i < values.size(); ++i)
    if (!std::isfinite(values[i]))
      return fail(ErrorCode::kNotFinite,
                  "row " + std::to_string(i / static_cast<std::size_t>(width)) + " is not finite");
  return {};
}

}  // namespace

FeatureStatistics::FeatureStatistics(std::int64_t features)
    : features_(features),
      sum_(static_cast<std::size_t>(features)),
      products_(static_cast<std::size_t>(features * features)) {}

Result<void> FeatureStatistics::add(std::span<const float> rows) {
  const auto count = rows_of(rows.size(), features_);
  if (!count) return tl::unexpected(count.error());
  if (auto finite = all_finite(rows, features_); !finite) return finite;
  using Rows = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  const Matrix x = Eigen::Map<const Rows>(rows.data(), *count, features_).cast<double>();
  Eigen::Map<Eigen::VectorXd>(sum_.data(), features_) += x.colwise().sum().transpose();
  Eigen::Map<Matrix>(products_.data(), features_, features_)
      .selfadjointView<Eigen::Upper>()
      .rankUpdate(x.transpose());
  count_ += *count;
  return {};
}

void FeatureStatistics::merge(const FeatureStatistics& other) {
  for (std::size_t i = 0; i < sum_.size(); ++i) sum_[i] += other.sum_[i];
  for (std::size_t i = 0; i < products_.size(); ++i) products_[i] += other.products_[i];
  count_ += other.count_;
}

std::vector<double> FeatureStatistics::mean() const {
  std::vector<double> mean = sum_;
  for (double& value : mean) value /= static_cast<double>(std::max<std::int64_t>(1, count_));
  return mean;
}

std::vector<double> FeatureStatistics::covariance() const {
  std::vector<double> result(products_.size());
  const Eigen::Map<const Eigen::VectorXd> sum(sum_.data(), features_);
  const auto n = static_cast<double>(count_);
  Eigen::Map<Matrix> out(result.data(), features_, features_);
  out = matrix_of(products_, features_).selfadjointView<Eigen::Upper>();
  out = (out - sum * sum.transpose() / n) / (n - 1);
  return result;
}

Result<double> frechet_distance(const FeatureStatistics& a, const FeatureStatistics& b) {
  if (a.features() != b.features())
    return fail(ErrorCode::kInvalidArgument, "features of " + std::to_string(a.features()) +
                                                 " and " + std::to_string(b.features()) +
                                                 " numbers cannot be compared");
  if (a.count() < 2 || b.count() < 2)
    return fail(ErrorCode::kInvalidArgument, "a covariance needs two rows, and there are " +
                                                 std::to_string(std::min(a.count(), b.count())));
  const std::int64_t size = a.features();
  const Matrix first = matrix_of(a.covariance(), size), second = matrix_of(b.covariance(), size);
  // tr((C1 C2)^(1/2)) = tr((S C2 S)^(1/2)) with S = C1^(1/2), which is symmetric.
  const Matrix root = square_root(first);
  const Eigen::SelfAdjointEigenSolver<Matrix> solver(root * second * root, Eigen::EigenvaluesOnly);
  const double cross = solver.eigenvalues().cwiseMax(0).cwiseSqrt().sum();
  const std::vector<double> m1 = a.mean(), m2 = b.mean();
  double distance = first.trace() + second.trace() - 2 * cross;
  for (std::size_t i = 0; i < m1.size(); ++i) distance += (m1[i] - m2[i]) * (m1[i] - m2[i]);
  return std::max(0.0, distance);
}

Result<InceptionScore> inception_score(std::span<const float> probabilities, std::int64_t classes,
                                       std::int64_t splits) {
  const auto rows = rows_of(probabilities.size(), classes);
  if (!rows) return tl::unexpected(rows.error());
  if (splits < 1 || *rows < splits)
    return fail(ErrorCode::kInvalidArgument, std::to_string(*rows) + " rows cannot be cut into " +
                                                 std::to_string(splits) + " parts");
  const auto width = static_cast<std::size_t>(classes);
  std::vector<double> scores;
  for (std::int64_t split = 0; split < splits; ++split) {
    const auto begin = static_cast<std::size_t>(*rows * split / splits);
    const auto end = static_cast<std::size_t>(*rows * (split + 1) / splits);
    const auto count = static_cast<double>(end - begin);
    std::vector<double> marginal(width);
    for (std::size_t row = begin; row < end; ++row)
      for (std::size_t c = 0; c < width; ++c)
        marginal[c] += static_cast<double>(probabilities[row * width + c]) / count;
    double divergence = 0;
    for (std::size_t row = begin; row < end; ++row)
      for (std::size_t c = 0; c < width; ++c)
        if (const double p = static_cast<double>(probabilities[row * width + c]); p > 0)
          divergence += p * std::log(p / marginal[c]) / count;
    scores.push_back(std::exp(divergence));
  }
  InceptionScore result;
  for (const double score : scores) result.mean += score / static_cast<double>(splits);
  for (const double score : scores)
    result.deviation += (score - result.mean) * (score - result.mean) / static_cast<double>(splits);
  result.deviation = std::sqrt(result.deviation);
  return result;
}

IntraClassVariance::IntraClassVariance(std::int64_t classes, std::int64_t pixels)
    : classes_(classes),
      pixels_(pixels),
      counts_(static_cast<std::size_t>(classes)),
      sum_(static_cast<std::size_t>(classes * pixels)),
      squares_(static_cast<std::size_t>(classes * pixels)) {}

Result<void> IntraClassVariance::add(std::span<const float> pictures,
                                     std::span<const std::int64_t> labels) {
  if (pictures.size() != labels.size() * static_cast<std::size_t>(pixels_))
    return fail(ErrorCode::kInvalidArgument, std::to_string(labels.size()) +
                                                 " labels do not go with " +
                                                 std::to_string(pictures.size()) + " pixels");
  for (const std::int64_t label : labels)
    if (label < 0 || label >= classes_)
      return fail(ErrorCode::kInvalidArgument,
                  "label " + std::to_string(label) + " is not below " + std::to_string(classes_));
  if (auto finite = all_finite(pictures, pixels_); !finite) return finite;
  const auto width = static_cast<std::size_t>(pixels_);
  for (std::size_t row = 0; row < labels.size(); ++row) {
    const auto label = static_cast<std::size_t>(labels[row]);
    ++counts_[label];
    for (std::size_t i = 0; i < width; ++i) {
      const auto value = static_cast<double>(pictures[row * width + i]);
      sum_[label * width + i] += value;
      squares_[label * width + i] += value * value;
    }
  }
  return {};
}

double IntraClassVariance::of_class(std::int64_t label) const {
  const auto count = static_cast<double>(counts_[static_cast<std::size_t>(label)]);
  if (count < 2) return 0;
  double total = 0;
  const auto begin = static_cast<std::size_t>(label * pixels_);
  for (std::size_t i = begin; i < begin + static_cast<std::size_t>(pixels_); ++i)
    total += std::max(0.0, squares_[i] - sum_[i] * sum_[i] / count) / (count - 1);
  return total / static_cast<double>(pixels_);
}

double IntraClassVariance::mean() const {
  double total = 0;
  int classes = 0;
  for (std::int64_t label = 0; label < classes_; ++label)
    if (counts_[static_cast<std::size_t>(label)] >= 2) {
      total += of_class(label);
      ++classes;
    }
  return classes == 0 ? 0 : total / classes;
}

}  // namespace troupe::learners
