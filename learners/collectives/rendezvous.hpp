// Where ranks find each other: a table of keys and values that one process keeps and all ask, over
// whatever connects them to it. The coordinator keeps it and its links carry it; nothing here opens
// a port. Torch-free.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "envs/spec/result.hpp"
#include "learners/collectives/request_link.hpp"

namespace troupe::learners {

// The table. Never waits, so that an actor may keep it: who waits for a key asks again. Any thread.
class RendezvousTable {
 public:
  // More than this in all is refused; keys longer than 1024 bytes are too.
  explicit RendezvousTable(std::size_t most_bytes = 16 << 20) : most_bytes_(most_bytes) {}

  // Answers one request of a RendezvousClient; bytes that are none get an error as the answer.
  std::vector<std::uint8_t> handle(std::span<const std::uint8_t> request);
  std::size_t keys() const;

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::vector<std::uint8_t>> values_;
  std::size_t most_bytes_, bytes_ = 0;
};

// For threads of the table's own process.
std::unique_ptr<RequestLink> make_local_link(std::shared_ptr<RendezvousTable> table);

// The table as its users see it. Any thread; requests take turns on the link.
class RendezvousClient {
 public:
  // Keys get `prefix` in front: one for each group and generation keeps them apart.
  RendezvousClient(std::shared_ptr<RequestLink> link, std::string prefix,
                   std::chrono::milliseconds timeout);

  using Bytes = std::vector<std::uint8_t>;
  Result<void> set(const std::string& key, const Bytes& value);
  Result<std::optional<Bytes>> find(const std::string& key);  // nothing: not set
  // As find(), asking again every few milliseconds; kTimeout names the key.
  Result<Bytes> get(const std::string& key, std::chrono::milliseconds timeout);
  // Adds to a number written in decimal; a missing one is 0. Returns the sum.
  Result<std::int64_t> add(const std::string& key, std::int64_t amount);
  // Sets `wanted` where `expected` stands (empty: also where nothing does) and returns what stands
  // there now.
  Result<Bytes> compare_set(const std::string& key, const Bytes& expected, const Bytes& wanted);
  Result<bool> erase(const std::string& key);  // whether there was one
  Result<std::int64_t> count();                // keys with the prefix
  std::chrono::milliseconds timeout() const { return timeout_; }

 private:
  Result<Bytes> ask(std::uint8_t verb, const std::string& key, const Bytes& first = {},
                    const Bytes& second = {});

  std::shared_ptr<RequestLink> link_;
  std::string prefix_;
  std::chrono::milliseconds timeout_;
  std::mutex mutex_;
};

}  // namespace troupe::learners
