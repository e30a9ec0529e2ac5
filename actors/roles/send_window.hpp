// The sender's side of credit flow: messages wait until there is credit, stay until they are
// acknowledged, and go out again after silence or on a new connection. The receivers de-duplicate.
// Credit is one for all receivers (lanes) together; each message has one. Pure: time is a
// parameter. One owner.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "envs/spec/result.hpp"
#include "replay/bytes.hpp"

namespace troupe::actors {

class SendWindow {
 public:
  using Time = std::chrono::steady_clock::time_point;
  using Payload = std::shared_ptr<const std::vector<std::uint8_t>>;
  // Names a message for its acknowledgement: (incarnation, sequence).
  struct Key {
    std::uint32_t incarnation = 0;
    std::uint64_t sequence = 0;
    bool operator==(const Key&) const = default;
  };
  struct Entry {
    Key key;
    std::uint64_t steps = 0;  // what it carries, for the counters
    Payload payload;
    bool sent = false;
    Time sent_at{};
    std::uint32_t environment = 0;  // whose steps it carries
    std::uint32_t lane = 0;
  };

  // At most `credit` messages unacknowledged; one that stays so for `resend_after` goes out again.
  SendWindow(std::size_t credit, std::chrono::milliseconds resend_after)
      : credit_(credit), resend_after_(resend_after) {}

  void add(Key key, std::uint64_t steps, Payload payload, std::uint32_t environment = 0,
           std::uint32_t lane = 0) {
    entries_.push_back({key, steps, std::move(payload), false, {}, environment, lane});
  }

  // The next message that may go out now; the caller sends it and says whether that worked with
  // sent(). Only the first `credit` entries are ever candidates.
  const Entry* next(Time now) const {
    return next(now, [](std::uint32_t) { return true; });
  }
  // Of the lanes for which open(lane).
  template <class Open>
  const Entry* next(Time now, Open open) const {
    for (std::size_t i = 0; i < entries_.size() && i < credit_; ++i) {
      const Entry& entry = entries_[i];
      if ((!entry.sent || now - entry.sent_at >= resend_after_) && open(entry.lane)) return &entry;
    }
    return nullptr;
  }
  void sent(const Key& key, Time now) {
    for (Entry& entry : entries_)
      if (entry.key == key) {
        if (entry.sent) ++resent_;
        entry.sent = true;
        entry.sent_at = now;
      }
  }

  // Steps of the acknowledged message; nullopt for one that is not here (a late or repeated
  // answer).
  std::optional<std::uint64_t> acknowledge(const Key& key) {
    for (auto entry = entries_.begin(); entry != entries_.end(); ++entry)
      if (entry->key == key) {
        const std::uint64_t steps = entry->steps;
        entries_.erase(entry);
        return steps;
      }
    return std::nullopt;
  }

  // The connection is a new one: everything unacknowledged goes out again.
  void reconnected() {
    for (Entry& entry : entries_) entry.sent = false;
  }
  void reconnected(std::uint32_t lane) {
    for (Entry& entry : entries_)
      if (entry.lane == lane) entry.sent = false;
  }
  // Messages that wait, of each lane below `lanes`.
  std::vector<std::size_t> by_lane(std::size_t lanes) const {
    std::vector<std::size_t> counts(lanes);
    for (const Entry& entry : entries_)
      if (entry.lane < lanes) ++counts[entry.lane];
    return counts;
  }

  // No further message would go out at once: the producer should stop.
  bool full() const { return entries_.size() >= credit_; }
  std::size_t size() const { return entries_.size(); }
  std::uint64_t resent() const { return resent_; }
  // Carried by all messages that wait.
  std::uint64_t steps() const {
    std::uint64_t total = 0;
    for (const Entry& entry : entries_) total += entry.steps;
    return total;
  }

  void save(std::vector<std::uint8_t>& out) const {
    replay::ByteWriter writer(out);
    writer.put(static_cast<std::uint64_t>(entries_.size()));
    for (const Entry& entry : entries_) {
      writer.put(entry.key.incarnation);
      writer.put(entry.key.sequence);
      writer.put(entry.steps);
      writer.array(std::span<const std::uint8_t>(*entry.payload));
    }
  }
  // Messages of lanes that are no more go to those that are, and are sent anew: nobody else would
  // ever acknowledge them. `lanes` >= 1.
  void fold_lanes(std::uint32_t lanes) {
    for (Entry& entry : entries_)
      if (entry.lane >= lanes) {
        entry.lane %= lanes;
        entry.sent = false;
      }
  }
  // Messages of one lane go to another one; `all`, or those that have not been sent there. They are
  // sent anew.
  void move_lane(std::uint32_t from, std::uint32_t to, bool all) {
    for (Entry& entry : entries_)
      if (entry.lane == from && (all || !entry.sent)) {
        entry.lane = to;
        entry.sent = false;
      }
  }
  // What save leaves out: environment and lane of each message.
  void save_lanes(std::vector<std::uint8_t>& out) const {
    replay::ByteWriter writer(out);
    for (const Entry& entry : entries_) {
      writer.put(entry.environment);
      writer.put(entry.lane);
    }
  }
  // Adds the saved messages with what save_lanes wrote; they go out first. kCorrupt leaves the
  // window as it was.
  Result<void> load(std::span<const std::uint8_t> bytes, std::span<const std::uint8_t> lanes) {
    replay::ByteReader reader(bytes);
    std::deque<Entry> entries;
    const auto count = reader.take<std::uint64_t>();
    for (std::uint64_t i = 0; i < count && reader.ok(); ++i) {
      Entry entry;
      entry.key.incarnation = reader.take<std::uint32_t>();
      entry.key.sequence = reader.take<std::uint64_t>();
      entry.steps = reader.take<std::uint64_t>();
      auto payload = std::make_shared<std::vector<std::uint8_t>>();
      reader.array(*payload);
      entry.payload = std::move(payload);
      entries.push_back(std::move(entry));
    }
    replay::ByteReader lane_reader(lanes);
    for (Entry& entry : entries) {
      entry.environment = lane_reader.take<std::uint32_t>();
      entry.lane = lane_reader.take<std::uint32_t>();
    }
    if (!reader.finished() || !lane_reader.finished())
      return fail(ErrorCode::kCorrupt, "the saved send window is damaged");
    entries_.insert(entries_.begin(), entries.begin(), entries.end());
    return {};
  }

 private:
  std::size_t credit_;
  std::chrono::milliseconds resend_after_;
  std::deque<Entry> entries_;
  std::uint64_t resent_ = 0;
};

}  // namespace troupe::actors
