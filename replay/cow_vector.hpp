// A growing array in blocks that its copies share until one of them changes a block: a copy of a
// million elements costs a few hundred references, which is how a table is cut while it works on.
// One thread each; copies on different threads may share blocks.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

namespace troupe::replay {

template <class T>
class CowVector {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

 public:
  static constexpr std::size_t kBlock = 4096;  // elements

  CowVector() = default;
  CowVector(const CowVector& other) : blocks_(other.blocks_), size_(other.size_) {
    for (Block* block : blocks_) block->owners.fetch_add(1, std::memory_order_relaxed);
  }
  CowVector(CowVector&& other) noexcept
      : blocks_(std::exchange(other.blocks_, {})), size_(std::exchange(other.size_, 0)) {}
  CowVector& operator=(CowVector other) noexcept {
    blocks_.swap(other.blocks_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~CowVector() {
    for (Block* block : blocks_) release(block);
  }

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const T& operator[](std::size_t i) const { return blocks_[i / kBlock]->values()[i % kBlock]; }
  // For writing: the block becomes this vector's own first, by a copy if another one shares it.
  T& edit(std::size_t i) {
    Block*& block = blocks_[i / kBlock];
    // Pairs with the release by the last other owner: its reads came before.
    if (block->owners.load(std::memory_order_acquire) != 1) block = copy_of(block);
    return block->values()[i % kBlock];
  }
  void push_back(const T& value) {
    if (size_ % kBlock == 0) blocks_.push_back(new_block());
    new (&edit(size_)) T(value);
    ++size_;
  }
  void resize(std::size_t size, const T& value = T{}) {
    while (size_ < size) push_back(value);
    while (blocks_.size() > (size + kBlock - 1) / kBlock) {
      release(blocks_.back());
      blocks_.pop_back();
    }
    size_ = size;
  }
  void clear() { resize(0); }

  // Calls visit(pointer, count) for each run of elements in order.
  template <class Visit>
  void runs(Visit visit) const {
    for (std::size_t first = 0; first < size_; first += kBlock)
      visit(&(*this)[first], size_ - first < kBlock ? size_ - first : kBlock);
  }

  // Bytes of all blocks, shared or not. The last one is counted as far as it was written.
  std::size_t bytes() const { return size_ * sizeof(T) + blocks_.size() * sizeof(Block); }

 private:
  // The elements follow in the same allocation and come to life one by one, so that a block's
  // memory is touched only as far as it is filled.
  struct alignas(alignof(std::max_align_t)) Block {
    std::atomic<std::uint32_t> owners{1};
    T* values() { return reinterpret_cast<T*>(this + 1); }
  };

  static Block* new_block() {
    void* memory = std::malloc(sizeof(Block) + kBlock * sizeof(T));
    if (memory == nullptr) throw std::bad_alloc();
    return new (memory) Block;
  }
  static void release(Block* block) {
    if (block->owners.fetch_sub(1, std::memory_order_acq_rel) == 1) std::free(block);
  }
  Block* copy_of(Block* shared) {
    Block* own = new_block();
    std::memcpy(static_cast<void*>(own->values()), shared->values(), kBlock * sizeof(T));
    release(shared);
    return own;
  }

  std::vector<Block*> blocks_;
  std::size_t size_ = 0;
};

}  // namespace troupe::replay
