// Checksummed sections in files, for checkpoints: a writer that becomes visible only when complete,
// and a reader that knows how many bytes are left. One owner, one thread each.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "envs/spec/result.hpp"

namespace troupe::replay {

// Holds a file descriptor; closes it.
class FileHandle {
 public:
  explicit FileHandle(int descriptor = -1) : descriptor_(descriptor) {}
  ~FileHandle();
  FileHandle(const FileHandle&) = delete;
  FileHandle& operator=(const FileHandle&) = delete;
  int get() const { return descriptor_; }

 private:
  int descriptor_;
};

// Syncs the finished file `temporary`, renames it to `path` beside it and syncs their folder: from
// then on `path` survives a power cut. kIo names the file.
Result<void> publish_file(const std::filesystem::path& temporary,
                          const std::filesystem::path& path);

class SectionWriter {
 public:
  // Creates `path` + ".writing" beside it. kIo names the file.
  static Result<std::unique_ptr<SectionWriter>> create(const std::filesystem::path& path);
  // Removes the temporary file unless commit succeeded.
  ~SectionWriter();

  // Errors are kept and returned by commit.
  void write(std::span<const std::uint8_t> bytes);
  // Announces a section of so many bytes; exactly those must be written before end_section.
  void begin_section(std::uint32_t tag, std::uint64_t bytes);
  void end_section();
  // Syncs the file, renames it to `path` and syncs the directory. Returns the bytes written.
  Result<std::uint64_t> commit();
  std::uint64_t written() const { return written_; }
  // CRC-32C of all that was written.
  std::uint32_t file_checksum() const { return file_checksum_; }

 private:
  SectionWriter(const std::filesystem::path& path, std::filesystem::path temporary, int descriptor);
  void flush();

  std::filesystem::path path_, temporary_;
  FileHandle file_;
  std::vector<std::uint8_t> buffer_;
  std::uint64_t written_ = 0;
  std::uint32_t checksum_ = 0, file_checksum_ = 0;
  std::string error_;  // the first one
  bool committed_ = false;
};

class SectionReader {
 public:
  static Result<std::unique_ptr<SectionReader>> open(const std::filesystem::path& path);

  std::uint64_t file_bytes() const { return file_bytes_; }
  // Not yet read: of the file, and of the section that begin_section opened.
  std::uint64_t remaining() const { return file_bytes_ - position_; }
  std::uint64_t section_remaining() const { return section_end_ - position_; }

  // Of all that was read so far.
  std::uint32_t file_checksum() const { return file_checksum_; }
  // Reads `count` bytes for the checksums alone.
  Result<void> skip(std::uint64_t count);
  // Replaces `bytes` by the next `count` ones; kCorrupt, before allocating, when there are fewer.
  Result<void> read(std::uint64_t count, std::vector<std::uint8_t>& bytes);
  // kCorrupt when the next section has another tag or does not fit into the file, and when a
  // section that ends was not read to its end or fails its checksum.
  Result<void> begin_section(std::uint32_t tag, const char* name);
  Result<void> end_section();
  // kCorrupt with the file's name before `what`.
  tl::unexpected<Error> corrupt(const std::string& what) const;

 private:
  SectionReader(const std::filesystem::path& path, int descriptor, std::uint64_t bytes);

  std::filesystem::path path_;
  FileHandle file_;
  std::uint64_t file_bytes_ = 0, position_ = 0, section_end_ = 0;
  std::uint32_t checksum_ = 0, file_checksum_ = 0;
  std::string section_;
};

}  // namespace troupe::replay
