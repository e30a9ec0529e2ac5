// Stepping allocates nothing once warm: operator new and MuJoCo's allocator are counted here, which
// is why this is a program of its own.
#include <gtest/gtest.h>
#include <mujoco/mujoco.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "tests/envs/helpers.hpp"

namespace {

std::atomic<long> allocations{0};

void* counted(std::size_t size, std::size_t alignment) {
  ++allocations;
  const std::size_t padded = (size + alignment - 1) / alignment * alignment;
  void* memory = std::aligned_alloc(alignment, padded == 0 ? alignment : padded);
  if (memory == nullptr) std::abort();
  return memory;
}

}  // namespace

void* operator new(std::size_t size) { return counted(size, alignof(std::max_align_t)); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  return counted(size, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

namespace troupe::envs {
namespace {

TEST(Allocation, IsNoneWhileSteppingAndResetting) {
  mju_user_malloc = [](std::size_t size) { return counted(size, 64); };
  mju_user_free = std::free;
  for (const std::string& name : testing::ordinary_tasks()) {
    testing::Runner runner(name, 2, 1, 0, {.time_limit = 40});
    runner.reset();
    Random random(3);
    for (int step = 0; step < 100; ++step) (void)runner.step(random);
    const long before = allocations;
    for (int step = 0; step < 200; ++step) (void)runner.step(random);
    EXPECT_EQ(allocations - before, 0) << name;
  }
}

TEST(Allocation, IsCountedAtAll) {
  const long before = allocations;
  auto memory = std::make_unique<std::vector<int>>(3);
  EXPECT_GT(allocations - before, 0);
}

}  // namespace
}  // namespace troupe::envs
