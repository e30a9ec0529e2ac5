// LibTorch's memory for tensors on the CPU, kept instead of given back: a training step asks for
// the same sizes again and again, and fresh pages from the kernel cost a seventh of a step of a
// ResNet on small pictures. Thread-safe.
#pragma once

#include <cstddef>

namespace troupe::models {

struct KeptMemory {
  std::size_t in_use = 0;  // bytes of blocks that tensors hold now
  std::size_t most = 0;    // the most that in_use has been
  std::size_t kept = 0;    // bytes of blocks that wait for the next tensor of their size
};

// From now on tensors of this process get blocks of 64 KiB and more from those that earlier ones
// left, rounded up to a quarter of a power of two; smaller ones come from malloc as before. What is
// kept stays below what was most in use, so that both together are at most twice that. Does nothing
// the second time.
void keep_tensor_memory();
// Zero everywhere before keep_tensor_memory.
KeptMemory kept_memory();

}  // namespace troupe::models
