// See file_io.hpp. POSIX calls, because std::ofstream tells neither what failed nor how much was
// written.
#include "actors/telemetry/file_io.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace troupe::actors::telemetry {
namespace {

namespace fs = std::filesystem;

tl::unexpected<Error> io_error(const fs::path& path, const char* what) {
  return fail(ErrorCode::kIo, "'" + path.string() + "' cannot be " + what + ": " + strerror(errno));
}

class Descriptor {
 public:
  Descriptor(const fs::path& path, int flags)
      : fd_(::open(path.c_str(), flags | O_CLOEXEC, 0644)) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  bool ok() const { return fd_ >= 0; }
  int get() const { return fd_; }

 private:
  int fd_;
};

bool write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

}  // namespace

Result<void> AppendFile::append(std::string_view record) {
  const Descriptor file(path_, O_WRONLY | O_CREAT | O_APPEND);
  if (!file.ok()) return io_error(path_, "opened");
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) return io_error(path_, "opened");
  // What an earlier failure could not take back.
  const auto present = static_cast<std::uint64_t>(info.st_size);
  if (present > size_ && ::ftruncate(file.get(), static_cast<off_t>(size_)) != 0) {
    return io_error(path_, "repaired");
  }
  size_ = std::min(size_, present);
  if (!write_all(file.get(), record)) {
    auto error = io_error(path_, "written");
    (void)!::ftruncate(file.get(), static_cast<off_t>(size_));
    return error;
  }
  size_ += record.size();
  return {};
}

}  // namespace troupe::actors::telemetry
