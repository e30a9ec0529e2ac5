// Arrays of numbers that collectives reduce, and the arithmetic they share: every reduction adds in
// the order of the sources, whoever computes it, so that equal inputs give equal bits. Pure
// functions over the caller's memory; torch-free.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace troupe::learners {

enum class ReduceOp : std::uint8_t { kSum, kMean, kMin, kMax };
const char* name_of(ReduceOp op);  // "sum"

enum class ElementType : std::uint8_t { kF32, kF64, kI32, kI64, kF16, kBf16 };
std::size_t size_of(ElementType type);  // bytes

struct Elements {
  void* data = nullptr;
  std::int64_t count = 0;
  ElementType type = ElementType::kF32;

  std::size_t bytes() const { return static_cast<std::size_t>(count) * size_of(type); }
  std::span<std::uint8_t> as_bytes() const { return {static_cast<std::uint8_t*>(data), bytes()}; }
};

// Writes sources[0] op sources[1] op ... into every destination, `count` elements each. kMean
// divides the sum by the number of sources; integers round towards zero. f16 and bf16 are summed in
// f32 and rounded once, to nearest even. A destination may be a source; else nothing overlaps. At
// least one source.
void reduce(ElementType type, ReduceOp op, std::int64_t count, std::span<const void* const> sources,
            std::span<void* const> destinations);

// values /= by: what turns a kSum into a kMean afterwards.
void divide(Elements values, int by);

// Part `index` of `parts` even ones of `count` elements; parts begin at multiples of 64 elements
// (whole cache lines), so the last ones may be shorter or empty.
struct Part {
  std::int64_t begin = 0, end = 0;
  std::int64_t size() const { return end - begin; }
};
Part part_of(std::int64_t count, int parts, int index);

}  // namespace troupe::learners
