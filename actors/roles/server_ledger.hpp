// The count of the updates that a run's learners sent to one parameter server, over all its lives:
//   sent = applied + rolled_back
// `sent` adds up what each life applied; `applied` is what the server holds; `rolled_back` what it
// had applied beyond the snapshot that its next life began with. Pure; owned by the coordinator.
#pragma once

#include <cstdint>

namespace troupe::actors {

// What a server says of itself, or its mark once it is gone (update_mark.hpp).
struct ServerLife {
  std::uint64_t version = 0;  // updates that it holds
  std::uint64_t applied = 0;  // of them in this life
  bool operator==(const ServerLife&) const = default;
};

struct UpdateCounts {
  std::uint64_t sent = 0, applied = 0, rolled_back = 0;
  bool operator==(const UpdateCounts&) const = default;
};

class ServerLedger {
 public:
  ServerLedger() = default;
  // Of a checkpoint: what was sent after it never happened.
  explicit ServerLedger(const UpdateCounts& saved)
      : earlier_(saved.sent), rolled_back_(saved.rolled_back), life_{.version = saved.applied} {}

  // Another life, which holds `version` updates. Returns how many are lost with the one before.
  std::uint64_t began(std::uint64_t version);
  // Of the present life; older news of it are ignored.
  void says(const ServerLife& life);
  // At a cut of the present life, or as of the newest news.
  UpdateCounts counts(const ServerLife& life) const {
    return {earlier_ + life.applied, life.version, rolled_back_};
  }
  UpdateCounts counts() const { return counts(life_); }

 private:
  std::uint64_t earlier_ = 0;  // applied in lives that are over
  std::uint64_t rolled_back_ = 0;
  ServerLife life_;
};

}  // namespace troupe::actors
