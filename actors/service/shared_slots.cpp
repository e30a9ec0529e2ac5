// Opens another process's memfd through /proc, which checks that both belong to one user.
#include "actors/service/shared_slots.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

namespace troupe::actors {
namespace {

constexpr std::uint32_t kMaxSlots = 64;
constexpr std::uint64_t kMaxSlotBytes = std::uint64_t{1} << 32;

struct Descriptor {
  int number = -1;
  ~Descriptor() {
    if (number >= 0) ::close(number);
  }
};

}  // namespace

Result<std::shared_ptr<SharedSlots>> SharedSlots::open(std::uint32_t process,
                                                       std::uint32_t descriptor,
                                                       std::uint32_t slots,
                                                       std::uint64_t slot_bytes) {
  if (slots == 0 || slots > kMaxSlots || slot_bytes == 0 || slot_bytes > kMaxSlotBytes ||
      slot_bytes % 64 != 0)
    return fail(ErrorCode::kInvalidArgument,
                "shared memory needs 1 to 64 slots of a multiple of 64 bytes, at most 4 GiB each");
  const std::string path = "/proc/" + std::to_string(process) + "/fd/" + std::to_string(descriptor);
  // Non-blocking, because the other end of a pipe may be all that the name stands for.
  const Descriptor file{::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK)};
  if (file.number < 0)
    return fail(ErrorCode::kUnavailable,
                "cannot open the shared memory " + path + ": " + std::strerror(errno));
  const int seals = ::fcntl(file.number, F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0)
    return fail(ErrorCode::kInvalidArgument, path + " is no memfd sealed against shrinking");
  struct stat status {};
  const std::uint64_t bytes = slots * slot_bytes;
  if (::fstat(file.number, &status) != 0 || static_cast<std::uint64_t>(status.st_size) < bytes)
    return fail(ErrorCode::kInvalidArgument,
                path + " has fewer than " + std::to_string(bytes) + " bytes");
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.number, 0);
  if (memory == MAP_FAILED)
    return fail(ErrorCode::kUnavailable,
                "cannot map the shared memory " + path + ": " + std::strerror(errno));
  return std::shared_ptr<SharedSlots>(
      new SharedSlots(static_cast<std::uint8_t*>(memory), slots, slot_bytes));
}

SharedSlots::~SharedSlots() { ::munmap(memory_, slots_ * slot_bytes_); }

std::span<std::uint8_t> SharedSlots::slot(std::uint32_t index) const {
  if (index >= slots_) return {};
  return {memory_ + index * slot_bytes_, static_cast<std::size_t>(slot_bytes_)};
}

}  // namespace troupe::actors
