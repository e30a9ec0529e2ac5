// Memory that a client on this host shares with the service, so that batches are gathered straight
// into it: a memfd of the client's, cut into equal slots. The client names the slot of each sample;
// it fills none that it still reads. The seal against shrinking is what makes it safe to write to:
// without it, a client could cut the file short under the writer. Immutable; any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "envs/spec/result.hpp"

namespace troupe::actors {

class SharedSlots {
 public:
  // Maps descriptor `descriptor` of process `process`. kInvalidArgument when it is no memfd sealed
  // against shrinking, or too small for the slots; kUnavailable when this process may not open it
  // (another user's, or one on another host).
  static Result<std::shared_ptr<SharedSlots>> open(std::uint32_t process, std::uint32_t descriptor,
                                                   std::uint32_t slots, std::uint64_t slot_bytes);
  ~SharedSlots();
  SharedSlots(const SharedSlots&) = delete;
  SharedSlots& operator=(const SharedSlots&) = delete;

  // Empty for a number that is not one of the slots.
  std::span<std::uint8_t> slot(std::uint32_t index) const;

 private:
  SharedSlots(std::uint8_t* memory, std::uint32_t slots, std::uint64_t slot_bytes)
      : memory_(memory), slots_(slots), slot_bytes_(slot_bytes) {}

  std::uint8_t* memory_;
  std::uint32_t slots_;
  std::uint64_t slot_bytes_;
};

}  // namespace troupe::actors
