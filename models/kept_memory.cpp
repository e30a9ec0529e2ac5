// Implements the allocator: a list of free blocks for each size, the newest, which caches know
// best, first.
#include "models/kept_memory.hpp"

#include <c10/core/CPUAllocator.h>
#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <new>
#include <vector>

namespace troupe::models {
namespace {

constexpr std::size_t kAlignment = 64;        // of what tensors get, as LibTorch promises
constexpr std::size_t kSmall = 64 << 10;      // malloc is good at less
constexpr std::size_t kHugePage = 2U << 20U;  // blocks from here on begin at one

// Before each block's data.
struct alignas(kAlignment) Header {
  std::size_t bytes = 0;  // of the whole block; 0: one of malloc's
};
static_assert(sizeof(Header) == kAlignment);

std::size_t rounded(std::size_t bytes) {
  const std::size_t step = std::bit_floor(bytes) / 4;
  return (bytes + step - 1) / step * step;
}

class Keeper final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    void* const data = bytes == 0 ? nullptr : take(bytes + sizeof(Header));
    return {data, data, &give_back, c10::Device(c10::kCPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &give_back; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    std::memcpy(to, from, bytes);
  }

  KeptMemory figures() {
    const std::lock_guard lock(mutex_);
    return figures_;
  }

 private:
  static void give_back(void* data);

  void* take(std::size_t bytes) {
    const bool small = bytes < kSmall;
    if (!small) bytes = rounded(bytes);
    void* block = small ? nullptr : find(bytes);
    if (block == nullptr) {
      const std::size_t alignment = bytes < kHugePage ? kAlignment : kHugePage;
      block = std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
      if (block == nullptr) throw std::bad_alloc();
      if (bytes >= kHugePage) (void)madvise(block, bytes, MADV_HUGEPAGE);  // a wish
    }
    return new (block) Header{small ? 0 : bytes} + 1;
  }

  void* find(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    figures_.in_use += bytes;
    figures_.most = std::max(figures_.most, figures_.in_use);
    const auto found = free_.find(bytes);
    if (found == free_.end() || found->second.empty()) return nullptr;
    void* block = found->second.back();
    found->second.pop_back();
    figures_.kept -= bytes;
    return block;
  }

  void put(Header* block) {
    const std::size_t bytes = block->bytes;
    if (bytes > 0) {
      const std::lock_guard lock(mutex_);
      figures_.in_use -= bytes;
      if (figures_.kept + bytes <= figures_.most) {
        figures_.kept += bytes;
        free_[bytes].push_back(block);
        return;
      }
    }
    std::free(block);
  }

  std::mutex mutex_;
  KeptMemory figures_;
  std::map<std::size_t, std::vector<void*>> free_;  // by bytes
};

// Never destroyed: tensors of static storage end after everything else.
Keeper* keeper = nullptr;
std::once_flag begun;

void Keeper::give_back(void* data) {
  if (data != nullptr) keeper->put(static_cast<Header*>(data) - 1);
}

}  // namespace

void keep_tensor_memory() {
  std::call_once(begun, [] {
    keeper = new Keeper;
    c10::SetCPUAllocator(keeper, 1);
  });
}

KeptMemory kept_memory() { return keeper == nullptr ? KeptMemory{} : keeper->figures(); }

}  // namespace troupe::models
