// Room on disk for the chunks of a table that is larger than memory: one file of fixed size,
// mapped, which the kernel keeps in memory as far as it likes, least recently used first. The file
// has no name and all its blocks from the start, so that a full disk is an error here and never a
// signal later. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "envs/spec/result.hpp"

namespace troupe::replay {

struct DiskOptions {
  std::string folder;  // empty: chunks stay in memory
  // Payload held there at most; the file is a sixteenth larger. While samples or cuts keep chunks
  // that have left the table, what finds no room goes to memory.
  std::int64_t bytes = 0;

  bool used() const { return !folder.empty(); }
};

class DiskTier {
 public:
  // kIo, with the numbers, when the folder cannot hold so many bytes.
  static Result<std::shared_ptr<DiskTier>> create(const std::filesystem::path& folder,
                                                  std::uint64_t bytes);
  ~DiskTier();
  DiskTier(const DiskTier&) = delete;
  DiskTier& operator=(const DiskTier&) = delete;

  // 64-byte aligned; nullptr when no free extent is large enough. O(log extents), best fit.
  std::uint8_t* allocate(std::size_t bytes);
  void free(std::uint8_t* data, std::size_t bytes);

  std::uint64_t size() const { return size_; }
  std::uint64_t used() const;

 private:
  DiskTier(std::uint8_t* memory, std::uint64_t size);

  std::uint8_t* const memory_;
  const std::uint64_t size_;
  mutable std::mutex mutex_;
  std::map<std::uint64_t, std::uint64_t> free_;                     // offset -> bytes
  std::set<std::pair<std::uint64_t, std::uint64_t>> free_by_size_;  // bytes, offset
  std::uint64_t used_ = 0;
};

}  // namespace troupe::replay
