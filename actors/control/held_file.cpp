// Implements files that are held by a lock of their own.
#include "actors/control/held_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

namespace troupe::actors {

namespace fs = std::filesystem;

namespace {

bool write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written < 0 && errno != EINTR) return false;
    if (written > 0) text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

}  // namespace

Result<HeldFile> HeldFile::create(fs::path path, std::string_view text) {
  const fs::path temporary = path.string() + "." + std::to_string(::getpid()) + ".tmp";
  const auto refused = [&](const char* verb) {
    return fail(ErrorCode::kIo,
                std::string("cannot ") + verb + " " + path.string() + ": " + std::strerror(errno));
  };
  ::unlink(temporary.c_str());  // of a process of the same number that died here
  const int descriptor =
      ::open(temporary.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (descriptor < 0) return refused("create");
  HeldFile file(temporary, descriptor);
  if (::flock(descriptor, LOCK_EX | LOCK_NB) != 0) return refused("lock");
  if (!write_all(descriptor, text)) return refused("write");
  if (::rename(temporary.c_str(), path.c_str()) != 0) return refused("create");
  file.path_ = std::move(path);
  return file;
}

HeldFile::~HeldFile() {
  if (descriptor_ < 0) return;
  ::unlink(path_.c_str());
  ::close(descriptor_);
}

bool is_held(const fs::path& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return false;
  const bool held = ::flock(descriptor, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  ::close(descriptor);
  return held;
}

}  // namespace troupe::actors
