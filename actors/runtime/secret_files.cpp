// See secret_files.hpp.
#include "actors/runtime/secret_files.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace troupe::actors {
namespace {

namespace fs = std::filesystem;

constexpr off_t kLargest = off_t{64} << 10;
constexpr mode_t kOthersRead = S_IRWXG | S_IRWXO, kOthersWrite = S_IWGRP | S_IWOTH;

std::string octal(mode_t mode) {
  char text[8];
  std::snprintf(text, sizeof text, "%04o", static_cast<unsigned>(mode & 07777));
  return text;
}

tl::unexpected<Error> io_error(const std::string& what, const fs::path& path) {
  const int number = errno;
  return fail(number == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo,
              what + " " + path.string() + ": " + std::strerror(number));
}

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return number_; }

 private:
  int number_;
};

Result<void> write_new(const fs::path& file, std::string_view bytes, mode_t mode) {
  const Descriptor out(::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
  if (out.get() < 0 && errno == EEXIST)
    return fail(ErrorCode::kInvalidArgument,
                file.string() + " exists already and is never overwritten; move it away first");
  if (out.get() < 0) return io_error("cannot write", file);
  ::fchmod(out.get(), mode);  // whatever the umask is
  while (!bytes.empty()) {
    const ssize_t written = ::write(out.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return io_error("cannot write", file);
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  if (::fsync(out.get()) != 0) return io_error("cannot write", file);
  return {};
}

Result<std::string> read_small(const fs::path& file, bool secret) {
  const Descriptor in(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status {};
  if (in.get() < 0 || ::fstat(in.get(), &status) != 0) return io_error("cannot read", file);
  if (secret && (status.st_mode & kOthersRead) != 0)
    return fail(ErrorCode::kInvalidArgument,
                file.string() + " is a secret that others may read (mode " + octal(status.st_mode) +
                    "): run chmod 600 " + file.string());
  if (!secret && (status.st_mode & kOthersWrite) != 0)
    return fail(ErrorCode::kInvalidArgument, "others may change " + file.string() + " (mode " +
                                                 octal(status.st_mode) + "): run chmod go-w " +
                                                 file.string());
  if (!S_ISREG(status.st_mode) || status.st_size > kLargest)
    return fail(ErrorCode::kCorrupt, file.string() + " is no file of keys or certificates");
  std::string bytes(static_cast<std::size_t>(status.st_size), '\0');
  std::size_t filled = 0;
  while (filled < bytes.size()) {
    const ssize_t got = ::read(in.get(), bytes.data() + filled, bytes.size() - filled);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return io_error("cannot read", file);
    if (got == 0) break;
    filled += static_cast<std::size_t>(got);
  }
  bytes.resize(filled);
  return bytes;
}

}  // namespace

Result<void> make_private_directory(const fs::path& directory) {
  if (::mkdir(directory.c_str(), S_IRWXU) == 0) return {};
  if (errno != EEXIST) return io_error("cannot make the folder", directory);
  struct stat status {};
  if (::stat(directory.c_str(), &status) != 0) return io_error("cannot use", directory);
  if (!S_ISDIR(status.st_mode))
    return fail(ErrorCode::kInvalidArgument, directory.string() + " is not a folder");
  if ((status.st_mode & kOthersWrite) != 0)
    return fail(ErrorCode::kInvalidArgument,
                "others may write to the folder " + directory.string() + " (mode " +
                    octal(status.st_mode) + "): run chmod 700 " + directory.string());
  return {};
}

Result<void> write_secret(const fs::path& file, std::string_view bytes) {
  return write_new(file, bytes, S_IRUSR | S_IWUSR);
}

Result<void> write_public(const fs::path& file, std::string_view bytes) {
  return write_new(file, bytes, S_IRUSR | S_IWUSR | S_IRGRP | S_IROTH);
}

Result<std::string> read_secret(const fs::path& file) { return read_small(file, true); }

Result<std::string> read_public(const fs::path& file) { return read_small(file, false); }

}  // namespace troupe::actors
