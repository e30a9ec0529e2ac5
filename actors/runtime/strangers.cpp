// See strangers.hpp.
#include "actors/runtime/strangers.hpp"

namespace troupe::actors {

std::optional<Lobby::Guest> Lobby::enter(std::uint64_t id, const std::string& address) {
  std::optional<Guest> leaves;
  const auto crowd = per_address_.find(address);
  if (crowd != per_address_.end() && crowd->second >= limits_.most_per_address) {
    for (const Guest& guest : guests_) {
      if (guest.address != address) continue;
      leaves = guest;
      break;
    }
  } else if (guests_.size() >= limits_.most) {
    leaves = guests_.front();
  }
  if (leaves) leave(leaves->id);
  by_id_[id] = guests_.insert(guests_.end(), {id, address});
  ++per_address_[address];
  return leaves;
}

void Lobby::leave(std::uint64_t id) {
  const auto found = by_id_.find(id);
  if (found == by_id_.end()) return;
  const auto crowd = per_address_.find(found->second->address);
  if (--crowd->second == 0) per_address_.erase(crowd);
  guests_.erase(found->second);
  by_id_.erase(found);
}

std::optional<std::string> StrangerLog::dropped(const std::string& who, const std::string& why,
                                                Time now) {
  ++total_;
  if (by_reason_.size() < kMostReasons || by_reason_.contains(why)) ++by_reason_[why];
  if (now - window_ >= kWindow && unnamed_ == 0) {
    window_ = now;
    named_ = 0;
    said_.clear();
  }
  const bool is_new = said_.size() < kMostReasons && said_.insert(why).second;
  if (is_new || named_ < kLines) {
    ++named_;
    return "dropped the connection of " + who + ": " + why;
  }
  ++unnamed_;
  last_reason_ = why;
  return std::nullopt;
}

std::optional<std::string> StrangerLog::summary(Time now) {
  if (unnamed_ == 0 || now - window_ < kWindow) return std::nullopt;
  std::string line =
      "dropped " + std::to_string(unnamed_) + " more connections, the last because " + last_reason_;
  unnamed_ = 0;
  named_ = 0;
  said_.clear();
  window_ = now;
  return line;
}

}  // namespace troupe::actors
