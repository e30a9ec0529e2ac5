// Implements reductions, in blocks that stay in the first cache.
#include "learners/collectives/elements.hpp"

#include <algorithm>
#include <bit>
#include <type_traits>

#include "learners/collectives/half.hpp"

namespace troupe::learners {
namespace {

constexpr std::int64_t kBlock = 2048;  // elements of a block of sums
constexpr std::int64_t kLine = 64;     // elements that no two parts share

// What values of type T are added in.
template <class T>
using Wide = std::conditional_t<std::is_arithmetic_v<T>, T, float>;

// Calls function(f) with f(a, b) = a op b.
template <class W, class Function>
void with_operation(ReduceOp op, Function function) {
  switch (op) {
    case ReduceOp::kSum:
    case ReduceOp::kMean:
      return function([](W a, W b) { return static_cast<W>(a + b); });
    case ReduceOp::kMin:
      return function([](W a, W b) { return b < a ? b : a; });
    case ReduceOp::kMax:
      return function([](W a, W b) { return a < b ? b : a; });
  }
}

// value / by, with the bits of a division: for powers of two the product is exact and faster.
template <class W>
void divide_all(W* values, std::int64_t count, int by) {
  const W divisor = static_cast<W>(by);
  if (std::is_floating_point_v<W> && std::has_single_bit(static_cast<unsigned>(by))) {
    const W factor = W{1} / divisor;
    for (std::int64_t i = 0; i < count; ++i) values[i] *= factor;
  } else {
    for (std::int64_t i = 0; i < count; ++i) values[i] /= divisor;
  }
}

// Two sources in one pass without a block between. A destination that is a source is read and
// written at one index only, hence ivdep.
template <class T, class Function>
void reduce_pair(const T* a, const T* b, std::span<void* const> destinations, std::int64_t count,
                 Function function) {
  using W = Wide<T>;
  T* first = static_cast<T*>(destinations.front());
  T* second = static_cast<T*>(destinations.back());
  if (first == second) {
#pragma GCC ivdep
    for (std::int64_t i = 0; i < count; ++i)
      first[i] = static_cast<T>(function(static_cast<W>(a[i]), static_cast<W>(b[i])));
  } else {
#pragma GCC ivdep
    for (std::int64_t i = 0; i < count; ++i) {
      const T value = static_cast<T>(function(static_cast<W>(a[i]), static_cast<W>(b[i])));
      first[i] = value;
      second[i] = value;
    }
  }
}

template <class T>
void reduce_typed(ReduceOp op, std::int64_t count, std::span<const void* const> sources,
                  std::span<void* const> destinations) {
  using W = Wide<T>;
  const auto source = [&](std::size_t i) { return static_cast<const T*>(sources[i]); };
  if (sources.size() == 2 && (destinations.size() == 1 || destinations.size() == 2)) {
    if (op == ReduceOp::kMean && std::is_floating_point_v<W>)
      return reduce_pair<T>(source(0), source(1), destinations, count,
                            [](W a, W b) { return static_cast<W>((a + b) / W{2}); });
    if (op != ReduceOp::kMean)
      return with_operation<W>(op, [&](auto function) {
        reduce_pair<T>(source(0), source(1), destinations, count, function);
      });
  }
  W sums[kBlock];
  for (std::int64_t at = 0; at < count; at += kBlock) {
    const std::int64_t block = std::min(kBlock, count - at);
    for (std::int64_t i = 0; i < block; ++i) sums[i] = static_cast<W>(source(0)[at + i]);
    with_operation<W>(op, [&](auto function) {
      for (std::size_t k = 1; k < sources.size(); ++k) {
        const T* __restrict more = source(k) + at;
        for (std::int64_t i = 0; i < block; ++i)
          sums[i] = function(sums[i], static_cast<W>(more[i]));
      }
    });
    if (op == ReduceOp::kMean) divide_all(sums, block, static_cast<int>(sources.size()));
    for (void* destination : destinations) {
      T* __restrict to = static_cast<T*>(destination) + at;
      for (std::int64_t i = 0; i < block; ++i) to[i] = static_cast<T>(sums[i]);
    }
  }
}

// Calls function(T{}) for the type that `type` stands for.
template <class Function>
void with_type(ElementType type, Function function) {
  switch (type) {
    case ElementType::kF32:
      return function(float{});
    case ElementType::kF64:
      return function(double{});
    case ElementType::kI32:
      return function(std::int32_t{});
    case ElementType::kI64:
      return function(std::int64_t{});
    case ElementType::kF16:
      return function(F16{});
    case ElementType::kBf16:
      return function(Bf16{});
  }
}

}  // namespace

const char* name_of(ReduceOp op) {
  constexpr const char* kNames[] = {"sum", "mean", "min", "max"};
  return kNames[static_cast<std::size_t>(op)];
}

std::size_t size_of(ElementType type) {
  constexpr std::size_t kSizes[] = {4, 8, 4, 8, 2, 2};
  return kSizes[static_cast<std::size_t>(type)];
}

void reduce(ElementType type, ReduceOp op, std::int64_t count, std::span<const void* const> sources,
            std::span<void* const> destinations) {
  with_type(type, [&]<class T>(T) { reduce_typed<T>(op, count, sources, destinations); });
}

void divide(Elements values, int by) {
  with_type(values.type, [&]<class T>(T) {
    T* data = static_cast<T*>(values.data);
    if constexpr (std::is_arithmetic_v<T>) {
      divide_all(data, values.count, by);
    } else {
      for (std::int64_t i = 0; i < values.count; ++i)
        data[i] = static_cast<T>(static_cast<float>(data[i]) / static_cast<float>(by));
    }
  });
}

Part part_of(std::int64_t count, int parts, int index) {
  const std::int64_t share = ((count + parts - 1) / parts + kLine - 1) / kLine * kLine;
  const std::int64_t begin = std::min(count, index * share);
  return {begin, std::min(count, begin + share)};
}

}  // namespace troupe::learners
