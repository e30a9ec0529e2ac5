// Sections over POSIX files: std::ofstream offers no fsync.
#include "replay/file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "replay/bytes.hpp"
#include "replay/checksum.hpp"

namespace troupe::replay {
namespace {

constexpr std::size_t kBuffer = std::size_t{1} << 20;

std::string reason(const std::filesystem::path& path, const char* action) {
  return std::string("cannot ") + action + " " + path.string() + ": " + std::strerror(errno);
}

// The rename survives a power cut only once its directory is synced.
bool sync_directory_of(const std::filesystem::path& path) {
  const auto parent = path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
  const FileHandle directory(::open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return directory.get() >= 0 && ::fsync(directory.get()) == 0;
}

}  // namespace

FileHandle::~FileHandle() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Result<void> publish_file(const std::filesystem::path& temporary,
                          const std::filesystem::path& path) {
  const FileHandle file(::open(temporary.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0 || ::fsync(file.get()) != 0)
    return fail(ErrorCode::kIo, reason(temporary, "sync"));
  if (::rename(temporary.c_str(), path.c_str()) != 0)
    return fail(ErrorCode::kIo, reason(path, "rename to"));
  if (!sync_directory_of(path)) return fail(ErrorCode::kIo, reason(path, "sync the folder of"));
  return {};
}

SectionWriter::SectionWriter(const std::filesystem::path& path, std::filesystem::path temporary,
                             int descriptor)
    : path_(path), temporary_(std::move(temporary)), file_(descriptor) {
  buffer_.reserve(kBuffer);
}

Result<std::unique_ptr<SectionWriter>> SectionWriter::create(const std::filesystem::path& path) {
  std::filesystem::path temporary = path;
  temporary += ".writing";
  const int descriptor = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (descriptor < 0) return fail(ErrorCode::kIo, reason(temporary, "create"));
  return std::unique_ptr<SectionWriter>(new SectionWriter(path, std::move(temporary), descriptor));
}

SectionWriter::~SectionWriter() {
  if (!committed_) ::unlink(temporary_.c_str());
}

void SectionWriter::flush() {
  std::size_t done = 0;
  while (error_.empty() && done < buffer_.size()) {
    const ssize_t count = ::write(file_.get(), buffer_.data() + done, buffer_.size() - done);
    if (count > 0)
      done += static_cast<std::size_t>(count);
    else if (errno != EINTR)
      error_ = reason(temporary_, "write");
  }
  buffer_.clear();
}

void SectionWriter::write(std::span<const std::uint8_t> bytes) {
  checksum_ = crc32c(bytes, checksum_);
  file_checksum_ = crc32c(bytes, file_checksum_);
  written_ += bytes.size();
  while (!bytes.empty()) {
    const std::size_t count = std::min(bytes.size(), kBuffer - buffer_.size());
    buffer_.insert(buffer_.end(), bytes.begin(),
                   bytes.begin() + static_cast<std::ptrdiff_t>(count));
    bytes = bytes.subspan(count);
    if (buffer_.size() == kBuffer) flush();
  }
}

void SectionWriter::begin_section(std::uint32_t tag, std::uint64_t bytes) {
  checksum_ = 0;
  std::vector<std::uint8_t> head;
  ByteWriter out(head);
  out.put(tag);
  out.put(bytes);
  write(head);
}

void SectionWriter::end_section() {
  std::vector<std::uint8_t> tail;
  ByteWriter(tail).put(checksum_);
  write(tail);
}

Result<std::uint64_t> SectionWriter::commit() {
  flush();
  if (error_.empty() && ::fsync(file_.get()) != 0) error_ = reason(temporary_, "sync");
  if (error_.empty() && ::rename(temporary_.c_str(), path_.c_str()) != 0)
    error_ = reason(path_, "rename to");
  if (!error_.empty()) return fail(ErrorCode::kIo, error_);
  committed_ = true;
  if (!sync_directory_of(path_)) return fail(ErrorCode::kIo, reason(path_, "sync the folder of"));
  return written_;
}

SectionReader::SectionReader(const std::filesystem::path& path, int descriptor, std::uint64_t bytes)
    : path_(path), file_(descriptor), file_bytes_(bytes), section_end_(bytes) {}

Result<std::unique_ptr<SectionReader>> SectionReader::open(const std::filesystem::path& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0)
    return fail(errno == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo, reason(path, "open"));
  struct stat status {};
  std::unique_ptr<SectionReader> reader;
  const bool known = ::fstat(descriptor, &status) == 0;
  reader.reset(
      new SectionReader(path, descriptor, known ? static_cast<std::uint64_t>(status.st_size) : 0));
  if (!known || !S_ISREG(status.st_mode))
    return fail(ErrorCode::kIo, path.string() + " is not a regular file");
  return reader;
}

tl::unexpected<Error> SectionReader::corrupt(const std::string& what) const {
  return fail(ErrorCode::kCorrupt, path_.string() + ": " + what);
}

Result<void> SectionReader::read(std::uint64_t count, std::vector<std::uint8_t>& bytes) {
  if (count > section_remaining())
    return corrupt("needs " + std::to_string(count) + " bytes at offset " +
                   std::to_string(position_) + ", has " + std::to_string(section_remaining()));
  bytes.resize(static_cast<std::size_t>(count));
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t got = ::read(file_.get(), bytes.data() + done, bytes.size() - done);
    if (got > 0)
      done += static_cast<std::size_t>(got);
    else if (got == 0)
      return corrupt("became shorter while it was read");
    else if (errno != EINTR)
      return fail(ErrorCode::kIo, reason(path_, "read"));
  }
  position_ += count;
  checksum_ = crc32c(bytes, checksum_);
  file_checksum_ = crc32c(bytes, file_checksum_);
  return {};
}

Result<void> SectionReader::skip(std::uint64_t count) {
  std::vector<std::uint8_t> bytes;
  while (count > 0) {
    const std::uint64_t piece = std::min<std::uint64_t>(count, kBuffer);
    if (auto good = read(piece, bytes); !good) return good;
    count -= piece;
  }
  return {};
}

Result<void> SectionReader::begin_section(std::uint32_t tag, const char* name) {
  section_ = name;
  section_end_ = file_bytes_;
  checksum_ = 0;
  std::vector<std::uint8_t> head;
  if (auto good = read(12, head); !good) return good;
  ByteReader in(head);
  if (in.take<std::uint32_t>() != tag) return corrupt("section '" + section_ + "' is missing");
  const auto bytes = in.take<std::uint64_t>();
  if (remaining() < 4 || bytes > remaining() - 4)
    return corrupt("section '" + section_ + "' says " + std::to_string(bytes) +
                   " bytes, but only " + std::to_string(remaining()) + " are left");
  section_end_ = position_ + bytes;
  return {};
}

Result<void> SectionReader::end_section() {
  if (section_remaining() != 0)
    return corrupt("section '" + section_ + "' has " + std::to_string(section_remaining()) +
                   " bytes too many");
  section_end_ = file_bytes_;
  const std::uint32_t expected = checksum_;
  std::vector<std::uint8_t> tail;
  if (auto good = read(4, tail); !good) return good;
  if (ByteReader(tail).take<std::uint32_t>() != expected)
    return corrupt("section '" + section_ + "' fails its checksum");
  return {};
}

}  // namespace troupe::replay
