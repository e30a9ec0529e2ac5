#include "learners/benchmark_roof.hpp"

#include <dlfcn.h>

#include <Eigen/Core>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <utility>

#include "learners/d4pg/step.hpp"
#include "learners/kernels/panels.hpp"

// LibTorch's BLAS, column-major as Fortran has it.
extern "C" void sgemm_(const char* transpose_a, const char* transpose_b, const int* m, const int* n,
                       const int* k, const float* alpha, const float* a, const int* lda,
                       const float* b, const int* ldb, const float* beta, float* c, const int* ldc);

namespace troupe::learners {
namespace {

constexpr std::int64_t kRows = 256, kObservation = 17, kAction = 6;

struct Operands {
  const float *left, *right;
  float* result;
};

// False: the library refused.
using Multiply = bool (*)(const Product&, const Operands&);

std::int64_t left_stride(const Product& p) { return p.left_transposed ? p.m : p.k; }
std::int64_t right_stride(const Product& p) { return p.right_transposed ? p.k : p.n; }

// Row-major C = A B is column-major C^T = B^T A^T: the operands change places.
bool multiply_mkl(const Product& p, const Operands& o) {
  const int m = static_cast<int>(p.m), n = static_cast<int>(p.n), k = static_cast<int>(p.k);
  const int lda = static_cast<int>(left_stride(p)), ldb = static_cast<int>(right_stride(p));
  const float one = 1, zero = 0;
  sgemm_(p.right_transposed ? "T" : "N", p.left_transposed ? "T" : "N", &n, &m, &k, &one, o.right,
         &ldb, o.left, &lda, &zero, o.result, &n);
  return true;
}

// oneDNN's C function: row-major, 0 for success.
using OnednnGemm = int(char, char, std::int64_t, std::int64_t, std::int64_t, float, const float*,
                       std::int64_t, const float*, std::int64_t, float, float*, std::int64_t);

// LibTorch carries another oneDNN with the same names: the library must prefer its own.
OnednnGemm* onednn_gemm() {
  static OnednnGemm* const function = [] {
    for (const char* name : {"libdnnl.so.2", "libdnnl.so.3", "libdnnl.so"})
      if (void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND))
        if (void* symbol = dlsym(library, "dnnl_sgemm"))
          return reinterpret_cast<OnednnGemm*>(symbol);
    return static_cast<OnednnGemm*>(nullptr);
  }();
  return function;
}

bool multiply_onednn(const Product& p, const Operands& o) {
  return onednn_gemm()(p.left_transposed ? 'T' : 'N', p.right_transposed ? 'T' : 'N', p.m, p.n, p.k,
                       1, o.left, left_stride(p), o.right, right_stride(p), 0, o.result, p.n) == 0;
}

bool multiply_eigen(const Product& p, const Operands& o) {
  using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  using Map = Eigen::Map<const Matrix, Eigen::Aligned64>;
  Eigen::Map<Matrix, Eigen::Aligned64> result(o.result, p.m, p.n);
  const Map left(o.left, p.left_transposed ? p.k : p.m, left_stride(p));
  const Map right(o.right, p.right_transposed ? p.n : p.k, right_stride(p));
  if (p.left_transposed)
    result.noalias() = left.transpose() * right;
  else if (p.right_transposed)
    result.noalias() = left * right.transpose();
  else
    result.noalias() = left * right;
  return true;
}

// Compares corners and a middle element with sums in double: a library that is fast because it
// computes something else has no part in the roof.
bool is_right(const Product& p, const Operands& o) {
  for (const auto& [row, column] :
       {std::pair{std::int64_t{0}, std::int64_t{0}}, {p.m / 2, p.n / 3}, {p.m - 1, p.n - 1}}) {
    double sum = 0;
    for (std::int64_t k = 0; k < p.k; ++k)
      sum += static_cast<double>(o.left[p.left_transposed ? k * p.m + row : row * p.k + k]) *
             static_cast<double>(o.right[p.right_transposed ? column * p.k + k : k * p.n + column]);
    if (std::abs(static_cast<double>(o.result[row * p.n + column]) - sum) > 1e-3) return false;
  }
  return true;
}

// Infinite when the library refuses or errs.
double time_of(Multiply multiply, const Product& product, const Operands& operands, int repeats) {
  std::fill_n(operands.result, product.m * product.n, 0.0F);
  if (!multiply(product, operands) || !is_right(product, operands))
    return std::numeric_limits<double>::infinity();
  std::vector<double> seconds;
  for (int i = 0; i < repeats; ++i) {
    const auto start = std::chrono::steady_clock::now();
    multiply(product, operands);
    seconds.push_back(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return median(std::move(seconds));
}

// Operands of order one, from a memory of their own.
class Matrices {
 public:
  explicit Matrices(const Product& p)
      : operands_{filled(p.m * p.k), filled(p.k * p.n), arena_.floats(p.m * p.n)} {}
  const Operands& operands() const { return operands_; }

 private:
  const float* filled(std::int64_t count) {
    float* values = arena_.floats(count);
    for (std::int64_t i = 0; i < count; ++i) values[i] = static_cast<float>(i % 31 - 15) / 16.0F;
    return values;
  }
  kernels::Arena arena_;
  Operands operands_;
};

struct Uses {
  int forward, weight_gradient, input_gradient, first_input_gradient;
};

void add_network(std::vector<Product>& products, const std::vector<models::DenseLayer>& layers,
                 const Uses& uses) {
  bool first = true;
  for (const models::DenseLayer& layer : layers) {
    if (layer.kind != models::DenseLayer::Kind::kLinear) continue;
    const std::int64_t outputs = layer.outputs, inputs = layer.inputs;
    const auto add = [&](const char* what, std::int64_t m, std::int64_t n, std::int64_t k,
                         bool left, bool right, int count) {
      if (count > 0) products.push_back({layer.name + what, m, n, k, left, right, count});
    };
    add(" forward", kRows, outputs, inputs, false, true, uses.forward);
    add(" weight gradient", outputs, inputs, kRows, true, false, uses.weight_gradient);
    add(" input gradient", kRows, inputs, outputs, false, false,
        first ? uses.first_input_gradient : uses.input_gradient);
    first = false;
  }
}

}  // namespace

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

std::vector<Product> reference_products() {
  const D4pgModel model = make_d4pg_model(kObservation, kAction, D4pgOptions{});
  std::vector<Product> products;
  add_network(products, model.policy, {2, 1, 1, 0});
  add_network(products, model.critic, {3, 1, 2, 1});
  return products;
}

ProductTime time_product(const Product& product, int repeats) {
  const Matrices matrices(product);
  ProductTime best{std::numeric_limits<double>::infinity(), ""};
  const auto consider = [&](const char* library, Multiply multiply) {
    const double seconds = time_of(multiply, product, matrices.operands(), repeats);
    if (seconds < best.seconds) best = {seconds, library};
  };
  consider("mkl", multiply_mkl);
  if (onednn_gemm() != nullptr) consider("onednn", multiply_onednn);
  consider("eigen", multiply_eigen);
  return best;
}

double time_mkl(const Product& product, int repeats) {
  const Matrices matrices(product);
  return time_of(multiply_mkl, product, matrices.operands(), repeats);
}

bool onednn_found() {
  if (onednn_gemm() == nullptr) return false;
  const Product probe{"probe", 7, 5, 9, false, true, 1};
  const Matrices matrices(probe);
  return std::isfinite(time_of(multiply_onednn, probe, matrices.operands(), 1));
}

}  // namespace troupe::learners
