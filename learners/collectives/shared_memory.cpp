// Implements the region: one memfd, opened by others through /proc, which checks that both
// processes belong to one user.
#include "learners/collectives/shared_memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "learners/collectives/shared_layout.hpp"

namespace troupe::learners {
namespace {

tl::unexpected<Error> system_error(const std::string& what) {
  return fail(ErrorCode::kIo, what + ": " + std::strerror(errno));
}

}  // namespace

Result<std::shared_ptr<SharedRegion>> SharedRegion::create(int ranks, std::size_t slot_bytes) {
  if (ranks < 1 || ranks > shared::kMaxRanks || slot_bytes == 0 || slot_bytes % shared::kPage != 0)
    return fail(
        ErrorCode::kInvalidArgument,
        "Shared memory is for 1 to 256 ranks with slots of a multiple of 4096 bytes, not for " +
            std::to_string(ranks) + " with " + std::to_string(slot_bytes) + ".");
  const std::size_t bytes = shared::region_bytes(static_cast<std::size_t>(ranks), slot_bytes);
  const int file = ::memfd_create("troupe-collective", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (file < 0) return system_error("Cannot make shared memory");
  void* memory = MAP_FAILED;
  if (::ftruncate(file, static_cast<off_t>(bytes)) == 0 &&
      ::fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) == 0)
    memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (memory == MAP_FAILED) {
    const auto error =
        system_error("Cannot map " + std::to_string(bytes) + " bytes of shared memory");
    ::close(file);
    return error;
  }
  shared::Header& header = shared::header_of(memory);
  header.ranks = static_cast<std::uint64_t>(ranks);
  header.slot_bytes = slot_bytes;
  header.magic = shared::kMagic;
  return std::shared_ptr<SharedRegion>(new SharedRegion(file, memory, bytes));
}

Result<std::shared_ptr<SharedRegion>> SharedRegion::open(const std::string& handle) {
  // Non-blocking, because the other end of a pipe may be all that the name stands for.
  const int file = ::open(handle.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return system_error("Cannot open the shared memory " + handle);
  const auto refuse = [&](const std::string& why) {
    ::close(file);
    return fail(ErrorCode::kInvalidArgument, handle + " is no collective's memory: " + why + ".");
  };
  struct stat status {};
  const int seals = ::fcntl(file, F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0)
    return refuse("it is not sealed against shrinking");
  if (::fstat(file, &status) != 0 || static_cast<std::size_t>(status.st_size) < shared::kPage)
    return refuse("it is too short");
  const auto bytes = static_cast<std::size_t>(status.st_size);
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (memory == MAP_FAILED)
    return refuse(std::string("it cannot be mapped, ") + std::strerror(errno));
  const shared::Header& header = shared::header_of(memory);
  if (header.magic != shared::kMagic || header.ranks < 1 || header.ranks > shared::kMaxRanks ||
      header.slot_bytes == 0 || header.slot_bytes % shared::kPage != 0 ||
      header.slot_bytes > bytes || shared::region_bytes(header.ranks, header.slot_bytes) != bytes) {
    ::munmap(memory, bytes);
    return refuse("its header does not hold");
  }
  return std::shared_ptr<SharedRegion>(new SharedRegion(file, memory, bytes));
}

SharedRegion::~SharedRegion() {
  ::munmap(memory_, bytes_);
  ::close(file_);
}

std::string SharedRegion::handle() const {
  return "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(file_);
}
int SharedRegion::ranks() const { return static_cast<int>(shared::header_of(memory_).ranks); }
std::size_t SharedRegion::slot_bytes() const { return shared::header_of(memory_).slot_bytes; }

}  // namespace troupe::learners
