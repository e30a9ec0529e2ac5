// Extents by best fit; neighbours that are free are joined.
#include "replay/disk_tier.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <iterator>
#include <string>

#include "replay/file.hpp"

namespace troupe::replay {
namespace {

constexpr std::uint64_t kAlignment = 64;
constexpr std::uint64_t aligned(std::uint64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

Result<std::shared_ptr<DiskTier>> DiskTier::create(const std::filesystem::path& folder,
                                                   std::uint64_t bytes) {
  bytes = aligned(bytes);
  const auto refuse = [&](const char* what, int error) {
    struct statvfs status {};
    std::string room;
    if (::statvfs(folder.c_str(), &status) == 0)
      room = "; " + std::to_string(std::uint64_t{status.f_bavail} * status.f_frsize) + " are free";
    return fail(ErrorCode::kIo, std::string(what) + " " + std::to_string(bytes) +
                                    " bytes for the replay in " + folder.string() + ": " +
                                    std::strerror(error) + room);
  };
  if (bytes == 0) return refuse("cannot keep", EINVAL);
  const FileHandle file(::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  int descriptor = file.get();
  std::string name = (folder / "troupe-replay-XXXXXX").string();
  if (descriptor < 0 && (errno == EOPNOTSUPP || errno == EISDIR)) {
    descriptor = ::mkostemp(name.data(), O_CLOEXEC);
    if (descriptor >= 0) ::unlink(name.c_str());
  }
  if (descriptor < 0) return refuse("cannot make a file of", errno);
  const FileHandle owner(descriptor == file.get() ? -1 : descriptor);
  if (const int error = ::posix_fallocate(descriptor, 0, static_cast<off_t>(bytes)); error != 0)
    return refuse("cannot set aside", error);
  void* memory =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, descriptor, 0);
  if (memory == MAP_FAILED) return refuse("cannot map", errno);
  return std::shared_ptr<DiskTier>(new DiskTier(static_cast<std::uint8_t*>(memory), bytes));
}

DiskTier::DiskTier(std::uint8_t* memory, std::uint64_t size) : memory_(memory), size_(size) {
  free_.emplace(0, size);
  free_by_size_.emplace(size, 0);
}

DiskTier::~DiskTier() { ::munmap(memory_, size_); }

std::uint8_t* DiskTier::allocate(std::size_t bytes) {
  const std::uint64_t wanted = aligned(bytes);
  const std::lock_guard lock(mutex_);
  const auto found = free_by_size_.lower_bound({wanted, 0});
  if (found == free_by_size_.end()) return nullptr;
  const auto [size, offset] = *found;
  free_by_size_.erase(found);
  free_.erase(offset);
  if (size > wanted) {
    free_.emplace(offset + wanted, size - wanted);
    free_by_size_.emplace(size - wanted, offset + wanted);
  }
  used_ += wanted;
  return memory_ + offset;
}

void DiskTier::free(std::uint8_t* data, std::size_t bytes) {
  auto offset = static_cast<std::uint64_t>(data - memory_);
  std::uint64_t size = aligned(bytes);
  const std::lock_guard lock(mutex_);
  used_ -= size;
  auto after = free_.lower_bound(offset);
  if (after != free_.begin()) {
    const auto before = std::prev(after);
    if (before->first + before->second == offset) {
      offset = before->first;
      size += before->second;
      free_by_size_.erase({before->second, before->first});
      free_.erase(before);
    }
  }
  if (after != free_.end() && after->first == offset + size) {
    size += after->second;
    free_by_size_.erase({after->second, after->first});
    free_.erase(after);
  }
  free_.emplace(offset, size);
  free_by_size_.emplace(size, offset);
}

std::uint64_t DiskTier::used() const {
  const std::lock_guard lock(mutex_);
  return used_;
}

}  // namespace troupe::replay
