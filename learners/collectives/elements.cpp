// Implements reductions, in blocks that stay in the first cache.
#include "learners/collectives/elements.hpp"

#include <algorithm>
#include <type_traits>

#include "learners/collectives/half.hpp"

namespace troupe::learners {
namespace {

constexpr std::int64_t kBlock = 2048;  // elements of a block of sums
constexpr std::int64_t kLine = 64;     // elements that no two parts share

// What values of type T are added in.
template <class T>
using Wide = std::conditional_t<std::is_arithmetic_v<T>, T, float>;

template <class T, class Combine>
void combine(Wide<T>* __restrict sums, const T* __restrict more, std::int64_t count,
             Combine function) {
  for (std::int64_t i = 0; i < count; ++i)
    sums[i] = function(sums[i], static_cast<Wide<T>>(more[i]));
}

template <class T>
void combine(Wide<T>* sums, const T* more, std::int64_t count, ReduceOp op) {
  using W = Wide<T>;
  switch (op) {
    case ReduceOp::kSum:
    case ReduceOp::kMean:
      return combine<T>(sums, more, count, [](W a, W b) { return static_cast<W>(a + b); });
    case ReduceOp::kMin:
      return combine<T>(sums, more, count, [](W a, W b) { return b < a ? b : a; });
    case ReduceOp::kMax:
      return combine<T>(sums, more, count, [](W a, W b) { return a < b ? b : a; });
  }
}

template <class T>
void reduce_typed(ReduceOp op, std::int64_t count, std::span<const void* const> sources,
                  std::span<void* const> destinations) {
  using W = Wide<T>;
  W sums[kBlock];
  for (std::int64_t at = 0; at < count; at += kBlock) {
    const std::int64_t block = std::min(kBlock, count - at);
    const auto source = [&](std::size_t i) { return static_cast<const T*>(sources[i]) + at; };
    const T* first = source(0);
    for (std::int64_t i = 0; i < block; ++i) sums[i] = static_cast<W>(first[i]);
    for (std::size_t i = 1; i < sources.size(); ++i) combine<T>(sums, source(i), block, op);
    if (op == ReduceOp::kMean)
      for (std::int64_t i = 0; i < block; ++i) sums[i] /= static_cast<W>(sources.size());
    for (void* destination : destinations) {
      T* to = static_cast<T*>(destination) + at;
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
    for (std::int64_t i = 0; i < values.count; ++i)
      data[i] = static_cast<T>(static_cast<Wide<T>>(data[i]) / static_cast<Wide<T>>(by));
  });
}

Part part_of(std::int64_t count, int parts, int index) {
  const std::int64_t share = ((count + parts - 1) / parts + kLine - 1) / kLine * kLine;
  const std::int64_t begin = std::min(count, index * share);
  return {begin, std::min(count, begin + share)};
}

}  // namespace troupe::learners
