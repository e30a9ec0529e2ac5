// Implements whole-file input and output over POSIX calls: the standard streams have no fsync.
#include "envs/spec/files.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace troupe {
namespace {

namespace fs = std::filesystem;

tl::unexpected<Error> refused(const char* verb, const fs::path& path, int error) {
  return fail(
      error == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo,
      "Cannot " + std::string(verb) + " " + path.string() + ": " + std::strerror(error) + ".");
}

class Descriptor {
 public:
  Descriptor(const fs::path& path, int flags)
      : value_(::open(path.c_str(), flags | O_CLOEXEC, 0644)) {}
  ~Descriptor() {
    if (value_ >= 0) ::close(value_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int value() const { return value_; }

 private:
  int value_;
};

// 0, or errno.
int write_all(int descriptor, std::span<const std::uint8_t> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno != EINTR) return errno;
    if (written > 0) bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return ::fsync(descriptor) == 0 ? 0 : errno;
}

int read_all(int descriptor, std::span<std::uint8_t> bytes) {
  while (!bytes.empty()) {
    const ssize_t got = ::read(descriptor, bytes.data(), bytes.size());
    if (got < 0 && errno != EINTR) return errno;
    if (got == 0) return EIO;  // shorter than a moment ago
    if (got > 0) bytes = bytes.subspan(static_cast<std::size_t>(got));
  }
  return 0;
}

}  // namespace

Result<void> write_file(const fs::path& path, std::span<const std::uint8_t> bytes) {
  const fs::path temporary = path.string() + ".tmp";
  int error = 0;
  {
    const Descriptor file(temporary, O_WRONLY | O_CREAT | O_TRUNC);
    if (file.value() < 0) return refused("create", temporary, errno);
    error = write_all(file.value(), bytes);
  }
  if (error == 0 && ::rename(temporary.c_str(), path.c_str()) != 0) error = errno;
  if (error != 0) {
    ::unlink(temporary.c_str());
    return refused("write", path, error);
  }
  const Descriptor folder(path.parent_path().empty() ? "." : path.parent_path(),
                          O_RDONLY | O_DIRECTORY);
  if (folder.value() >= 0) (void)::fsync(folder.value());  // not every file system can
  return {};
}

Result<void> write_file(const fs::path& path, std::string_view text) {
  return write_file(path,
                    std::span(reinterpret_cast<const std::uint8_t*>(text.data()), text.size()));
}

Result<void> write_files(const fs::path& folder, std::span<const FileContent> files) {
  for (const FileContent& file : files)
    if (auto written = write_file(folder / file.name, file.bytes); !written) return written;
  return {};
}

Result<std::vector<std::uint8_t>> read_file(const fs::path& path) {
  const Descriptor file(path, O_RDONLY | O_NONBLOCK);  // a pipe must not hold us up
  struct stat status {};
  if (file.value() < 0 || ::fstat(file.value(), &status) != 0) return refused("read", path, errno);
  if (!S_ISREG(status.st_mode))
    return fail(ErrorCode::kIo, path.string() + " is not a regular file.");
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(status.st_size));
  if (const int error = read_all(file.value(), bytes); error != 0)
    return refused("read", path, error);
  return bytes;
}

Result<std::string> read_text(const fs::path& path) {
  return read_file(path).map(
      [](const auto& bytes) { return std::string(bytes.begin(), bytes.end()); });
}

}  // namespace troupe
