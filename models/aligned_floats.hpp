// A vector of floats that begins at a cache line, so that vectors of the machine never lie across
// two; from a megabyte on it lies on huge pages, which the caches' prefetching needs not stop at.
// Torch-free.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <new>
#include <vector>

namespace troupe::models {

template <class T>
class LineAllocator {
 public:
  using value_type = T;

  LineAllocator() = default;
  template <class U>
  LineAllocator(const LineAllocator<U>& /*other*/) {
  }  // NOLINT(google-explicit-constructor): rebinding

  T* allocate(std::size_t count) {
    if (!is_large(count))
      return static_cast<T*>(::operator new (count * sizeof(T), std::align_val_t{kLine}));
    const std::size_t size = (count * sizeof(T) + kHugePage - 1) / kHugePage * kHugePage;
    void* memory = ::operator new (size, std::align_val_t{kHugePage});
    madvise(memory, size, MADV_HUGEPAGE);  // only advice
    return static_cast<T*>(memory);
  }
  void deallocate(T* memory, std::size_t count) {
    ::operator delete (memory, std::align_val_t{is_large(count) ? kHugePage : kLine});
  }
  bool operator==(const LineAllocator& /*other*/) const { return true; }

 private:
  static constexpr std::size_t kLine = 64, kHugePage = 2 << 20;
  static bool is_large(std::size_t count) { return count * sizeof(T) >= kHugePage / 2; }
};

using AlignedFloats = std::vector<float, LineAllocator<float>>;

}  // namespace troupe::models
