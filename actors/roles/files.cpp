// Implements whole-file reading and writing.
#include "actors/roles/files.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <span>

#include "replay/checksum.hpp"

namespace troupe::actors {
namespace {

tl::unexpected<Error> system_error(const std::string& what, const std::filesystem::path& path) {
  return fail(ErrorCode::kIo, what + " " + path.string() + ": " + std::strerror(errno));
}

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

Result<void> write_all(int fd, const void* data, std::size_t size,
                       const std::filesystem::path& path) {
  const char* next = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t written = ::write(fd, next, size);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return system_error("cannot write", path);
    next += written;
    size -= static_cast<std::size_t>(written);
  }
  if (::fsync(fd) != 0) return system_error("cannot sync", path);
  return {};
}

}  // namespace

Result<void> write_file(const std::filesystem::path& path, const void* data, std::size_t size) {
  std::filesystem::path temporary = path;
  temporary += ".tmp";
  {
    const Descriptor file(
        ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
    if (file.get() < 0) return system_error("cannot create", temporary);
    if (auto written = write_all(file.get(), data, size, temporary); !written) {
      ::unlink(temporary.c_str());
      return written;
    }
  }
  if (::rename(temporary.c_str(), path.c_str()) != 0) return system_error("cannot rename to", path);
  const Descriptor folder(::open(path.parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.get() >= 0) ::fsync(folder.get());  // best effort: not every file system can
  return {};
}

Result<void> write_file(const std::filesystem::path& path, const std::string& text) {
  return write_file(path, text.data(), text.size());
}

Result<std::vector<std::uint8_t>> read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file)
    return fail(errno == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo,
                "cannot open " + path.string() + ": " + std::strerror(errno));
  std::vector<std::uint8_t> bytes{std::istreambuf_iterator<char>(file), {}};
  if (file.bad()) return system_error("cannot read", path);
  return bytes;
}

Result<std::string> read_text(const std::filesystem::path& path) {
  return read_file(path).map(
      [](const auto& bytes) { return std::string(bytes.begin(), bytes.end()); });
}

Result<FileSum> sum_of_file(const std::filesystem::path& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) return system_error("cannot open", path);
  FileSum sum;
  std::vector<std::uint8_t> piece(std::size_t{1} << 20);
  while (true) {
    const ssize_t count = ::read(file.get(), piece.data(), piece.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return system_error("cannot read", path);
    if (count == 0) return sum;
    sum.crc32c =
        replay::crc32c(std::span(piece.data(), static_cast<std::size_t>(count)), sum.crc32c);
    sum.bytes += static_cast<std::uint64_t>(count);
  }
}

}  // namespace troupe::actors
