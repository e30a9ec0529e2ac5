// What a relay keeps about connections that have not shown who they are: how many may knock at
// once, and how much is said about those that are sent away. Pure: time is a parameter. Not
// thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <string>

namespace troupe::actors {

// Connections in their handshake. Room is made by sending away whoever has knocked longest, so that
// a flood delays an honest peer, whose handshake takes milliseconds, but never shuts it out.
class Lobby {
 public:
  struct Limits {
    std::size_t most = 128, most_per_address = 64;
  };
  explicit Lobby(Limits limits) : limits_(limits) {}

  struct Guest {
    std::uint64_t id = 0;
    std::string address;
  };
  // Who must leave for it: the oldest of its own address, or of all; it is forgotten here.
  std::optional<Guest> enter(std::uint64_t id, const std::string& address);
  void leave(std::uint64_t id);
  std::size_t size() const { return guests_.size(); }

 private:
  using Guests = std::list<Guest>;  // oldest first
  Limits limits_;
  Guests guests_;
  std::map<std::uint64_t, Guests::iterator> by_id_;
  std::map<std::string, std::size_t> per_address_;
};

// Names the first few of a burst, then counts them.
class StrangerLog {
 public:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr int kLines = 5;  // named in each window, and the first of each reason
  static constexpr std::chrono::seconds kWindow{10};
  static constexpr std::size_t kMostReasons = 32;  // told apart

  // A line to log, or none because enough has been said.
  std::optional<std::string> dropped(const std::string& who, const std::string& why, Time now);
  // The summary of a window that is over and left some unnamed; call it now and then.
  std::optional<std::string> summary(Time now);
  std::uint64_t total() const { return total_; }
  const std::map<std::string, std::uint64_t>& by_reason() const { return by_reason_; }

 private:
  Time window_{};
  int named_ = 0;
  std::uint64_t unnamed_ = 0, total_ = 0;
  std::string last_reason_;
  std::map<std::string, std::uint64_t> by_reason_;
  std::set<std::string> said_;  // reasons of this window
};

}  // namespace troupe::actors
