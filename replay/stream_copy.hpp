// A copy that leaves the caches alone, for what is larger than they are.
#pragma once

#include <cstddef>
#include <cstdint>

namespace troupe::replay {

// As memcpy, but writes past the caches, which saves reading the target's lines first. Without
// vector instructions it is memcpy. Others see the bytes after stream_fence(). (memcpy itself does
// so only for single copies of most of the last cache's size; a batch of many rows is none.)
void stream_copy(std::uint8_t* to, const std::uint8_t* from, std::size_t bytes);
void stream_fence();
// Whether a target of so many bytes is better written past the caches.
bool exceeds_caches(std::size_t bytes);

}  // namespace troupe::replay
