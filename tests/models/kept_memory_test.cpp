// Memory that tensors leave serves the next ones, and does not pile up.
#include "models/kept_memory.hpp"

#include <gtest/gtest.h>

#include "models/torch_precompiled.hpp"

namespace troupe::models {
namespace {

constexpr std::int64_t kFloats = 1 << 20;  // 4 MiB

TEST(KeptMemory, ATensorOfTheSameSizeGetsTheSameMemory) {
  keep_tensor_memory();
  at::Tensor first = at::empty({kFloats}, at::kFloat);
  const void* where = first.data_ptr();
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(where) % 64, 0U);
  const KeptMemory during = kept_memory();
  first.reset();
  EXPECT_LT(kept_memory().in_use, during.in_use);
  EXPECT_GE(kept_memory().kept, static_cast<std::size_t>(4 * kFloats));
  const at::Tensor second = at::empty({kFloats - 8}, at::kFloat);  // in the same class of sizes
  EXPECT_EQ(second.data_ptr(), where);
  EXPECT_EQ(kept_memory().in_use, during.in_use);
}

TEST(KeptMemory, WhatIsKeptStaysBelowWhatWasMostInUse) {
  keep_tensor_memory();
  for (std::int64_t i = 1; i < 40; ++i) {
    (void)at::empty({i * kFloats / 4}, at::kFloat);  // ever other sizes
    EXPECT_LE(kept_memory().kept, kept_memory().most);
  }
  EXPECT_LE(kept_memory().most, static_cast<std::size_t>(40 * kFloats));  // the largest, rounded
}

TEST(KeptMemory, SmallAndEmptyTensorsAreNoBusinessOfIt) {
  keep_tensor_memory();
  const KeptMemory before = kept_memory();
  const at::Tensor small = at::ones({100}, at::kFloat), none = at::empty({0}, at::kFloat);
  EXPECT_EQ(kept_memory().in_use, before.in_use);
  EXPECT_EQ(small.sum().item<float>(), 100);
  EXPECT_EQ(none.numel(), 0);
}

}  // namespace
}  // namespace troupe::models
