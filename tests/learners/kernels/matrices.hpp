// Random matrices and panels for the tests of the kernels, and slow products in double.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "envs/spec/random.hpp"
#include "learners/kernels/panels.hpp"

namespace troupe::learners::kernels {

// Row-major.
struct Matrix {
  Matrix(std::int64_t rows_in, std::int64_t columns_in)
      : rows(rows_in), columns(columns_in), values(static_cast<std::size_t>(rows * columns)) {}
  float& at(std::int64_t row, std::int64_t column) {
    return values[static_cast<std::size_t>(row * columns + column)];
  }
  float at(std::int64_t row, std::int64_t column) const {
    return values[static_cast<std::size_t>(row * columns + column)];
  }
  std::int64_t rows, columns;
  std::vector<float> values;
};

inline Matrix random_matrix(std::int64_t rows, std::int64_t columns, Random& random) {
  Matrix matrix(rows, columns);
  for (float& value : matrix.values) value = static_cast<float>(random.uniform(-1, 1));
  return matrix;
}

// Rows of the matrix = rows of the panels; lanes past the last column are 0.
inline Panels to_panels(const Matrix& matrix, Arena& arena) {
  const Panels panels = arena.panels(matrix.rows, matrix.columns);
  for (std::int64_t row = 0; row < matrix.rows; ++row)
    for (std::int64_t column = 0; column < matrix.columns; ++column)
      panels.at(row, column) = matrix.at(row, column);
  return panels;
}

inline Range all_panels(std::int64_t items) { return {0, panels_of(items)}; }

}  // namespace troupe::learners::kernels
