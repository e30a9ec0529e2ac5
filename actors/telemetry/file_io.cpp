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
  bool close() {
    const int fd = fd_;
    fd_ = -1;
    return ::close(fd) == 0;
  }

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

Result<std::string> read_file(const fs::path& path) {
  const Descriptor file(path, O_RDONLY | O_NONBLOCK);
  if (!file.ok()) {
    const ErrorCode code = errno == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo;
    return fail(code, "'" + path.string() + "' cannot be opened: " + strerror(errno));
  }
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) return io_error(path, "read");
  if (!S_ISREG(info.st_mode)) {
    return fail(ErrorCode::kIo, "'" + path.string() + "' is not a regular file");
  }
  std::string content(static_cast<std::size_t>(info.st_size), '\0');
  std::size_t filled = 0;
  while (filled < content.size()) {
    const ssize_t got = ::read(file.get(), content.data() + filled, content.size() - filled);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return io_error(path, "read");
    if (got == 0) break;
    filled += static_cast<std::size_t>(got);
  }
  content.resize(filled);
  return content;
}

Result<void> replace_file(const fs::path& path, std::string_view content) {
  fs::path temporary = path;
  temporary += ".new";
  Descriptor file(temporary, O_WRONLY | O_CREAT | O_TRUNC);
  if (!file.ok()) return io_error(temporary, "created");
  const bool written = write_all(file.get(), content) && ::fsync(file.get()) == 0 && file.close();
  if (!written || ::rename(temporary.c_str(), path.c_str()) != 0) {
    auto error = io_error(path, "written");
    ::unlink(temporary.c_str());
    return error;
  }
  // Makes the rename itself durable; a file system that cannot do so loses no content.
  const Descriptor directory(path.has_parent_path() ? path.parent_path() : fs::path("."), O_RDONLY);
  if (directory.ok()) (void)::fsync(directory.get());
  return {};
}

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
