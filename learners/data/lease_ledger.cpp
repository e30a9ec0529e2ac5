#include "learners/data/lease_ledger.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace troupe::learners::data {

LeaseLedger::LeaseLedger(std::int64_t size, std::uint64_t epochs) : size_(size), epochs_(epochs) {}

Lease LeaseLedger::grant(std::uint32_t worker, std::uint64_t epoch, std::int64_t begin,
                         std::int64_t end) {
  const Lease lease{next_id_++, epoch, begin, end};
  leases_.emplace(lease.id, Open{lease, worker, std::vector<bool>(end - begin), end - begin});
  return lease;
}

std::optional<Lease> LeaseLedger::lease(std::uint32_t worker, std::int64_t n) {
  if (!freed_.empty()) {
    Lease& front = freed_.front();
    const std::int64_t begin = front.begin;
    const std::int64_t end = std::min(front.end, begin + n);
    const std::uint64_t epoch = front.epoch;
    front.begin = end;
    if (front.begin == front.end) freed_.pop_front();
    return grant(worker, epoch, begin, end);
  }
  const std::optional<Place> place = next();
  if (!place) return std::nullopt;
  Epoch& epoch = open_epochs_[place->epoch];
  epoch.next = std::min(size_, place->position + n);
  return grant(worker, place->epoch, place->position, epoch.next);
}

std::optional<LeaseLedger::Place> LeaseLedger::next() const {
  if (!freed_.empty()) return Place{freed_.front().epoch, freed_.front().begin};
  Place place{first_open_, 0};
  if (!open_epochs_.empty()) {
    const auto& [number, epoch] = *open_epochs_.rbegin();
    const bool over = epoch.next == size_;
    place = {number + (over ? 1 : 0), over ? 0 : epoch.next};
  }
  if (epochs_ > 0 && place.epoch >= epochs_) return std::nullopt;
  return place;
}

std::optional<Lease> LeaseLedger::find(std::uint64_t lease, std::uint32_t worker) const {
  const auto found = leases_.find(lease);
  if (found == leases_.end() || found->second.worker != worker) return std::nullopt;
  return found->second.lease;
}

bool LeaseLedger::hand_over(std::uint64_t lease, std::uint32_t worker) {
  const auto found = leases_.find(lease);
  if (found == leases_.end()) return false;
  found->second.worker = worker;
  return true;
}

bool LeaseLedger::current(const Consumed& consumed) const {
  const auto found = leases_.find(consumed.lease);
  return found != leases_.end() && consumed.position >= found->second.lease.begin &&
         consumed.position < found->second.lease.end &&
         !found->second.done[consumed.position - found->second.lease.begin];
}

std::int64_t LeaseLedger::commit(std::span<const Consumed> consumed) {
  std::int64_t fresh = 0;
  for (const Consumed& one : consumed) {
    if (!current(one)) {
      ++ignored_;
      continue;
    }
    ++fresh;
    const auto found = leases_.find(one.lease);
    found->second.done[one.position - found->second.lease.begin] = true;
    if (--found->second.left > 0) continue;
    settle(found->second);
    leases_.erase(found);
  }
  close_epochs();
  return fresh;
}

void LeaseLedger::settle(const Open& open) {
  Epoch& epoch = open_epochs_.at(open.lease.epoch);
  for (std::int64_t begin = open.lease.begin; begin < open.lease.end;) {
    const bool done = open.done[begin - open.lease.begin];
    std::int64_t end = begin;
    while (end < open.lease.end && open.done[end - open.lease.begin] == done) ++end;
    if (done)
      add_range(epoch, begin, end);
    else
      freed_.push_back({0, open.lease.epoch, begin, end});
    begin = end;
  }
}

void LeaseLedger::add_range(Epoch& epoch, std::int64_t begin, std::int64_t end) {
  epoch.count += end - begin;
  auto next = epoch.ranges.lower_bound(begin);
  if (next != epoch.ranges.begin() && std::prev(next)->second == begin) {
    begin = std::prev(next)->first;
    next = epoch.ranges.erase(std::prev(next));
  }
  if (next != epoch.ranges.end() && next->first == end) {
    end = next->second;
    epoch.ranges.erase(next);
  }
  epoch.ranges.emplace(begin, end);
}

void LeaseLedger::close_epochs() {
  while (!open_epochs_.empty() && open_epochs_.begin()->first == first_open_ &&
         open_epochs_.begin()->second.count == size_) {
    open_epochs_.erase(open_epochs_.begin());
    ++first_open_;
  }
}

std::int64_t LeaseLedger::release(std::uint32_t worker) {
  std::int64_t freed = 0;
  for (auto at = leases_.begin(); at != leases_.end();) {
    if (at->second.worker != worker) {
      ++at;
      continue;
    }
    freed += at->second.left;
    settle(at->second);
    at = leases_.erase(at);
  }
  return freed;
}

std::int64_t LeaseLedger::release_all() {
  std::int64_t freed = 0;
  for (const auto& [id, open] : leases_) {
    freed += open.left;
    settle(open);
  }
  leases_.clear();
  return freed;
}

std::int64_t LeaseLedger::committed(std::uint64_t epoch) const {
  if (epoch < first_open_) return size_;
  const auto found = open_epochs_.find(epoch);
  std::int64_t count = found == open_epochs_.end() ? 0 : found->second.count;
  for (const auto& [id, open] : leases_)
    if (open.lease.epoch == epoch) count += open.lease.end - open.lease.begin - open.left;
  return count;
}

std::int64_t LeaseLedger::leased() const {
  std::int64_t count = 0;
  for (const auto& [id, open] : leases_) count += open.left;
  return count;
}

void LeaseLedger::begin_at(const Place& place) {
  LeaseLedger begun(size_, epochs_);
  begun.first_open_ = place.epoch;
  if (place.position > 0) {
    Epoch& epoch = begun.open_epochs_[place.epoch];
    begun.add_range(epoch, 0, place.position);
    epoch.next = place.position;
  }
  begun.next_id_ = next_id_;  // old ids stay unknown
  begun.close_epochs();
  *this = std::move(begun);
}

void LeaseLedger::save(replay::ByteWriter& out) const {
  LeaseLedger settled = *this;  // what is committed within open leases, too
  settled.release_all();
  out.put(size_);
  out.put(first_open_);
  out.put(ignored_);
  out.put(static_cast<std::uint64_t>(settled.open_epochs_.size()));
  for (const auto& [number, epoch] : settled.open_epochs_) {
    out.put(number);
    out.put(static_cast<std::uint64_t>(epoch.ranges.size()));
    for (const auto& [begin, end] : epoch.ranges) {
      out.put(begin);
      out.put(end);
    }
  }
}

Result<void> LeaseLedger::load(replay::ByteReader& in) {
  const auto corrupt = [](const char* what) {
    return fail(ErrorCode::kCorrupt, std::string("ledger of leases: ") + what);
  };
  if (in.take<std::int64_t>() != size_) return corrupt("it is of another number of positions");
  LeaseLedger loaded(size_, epochs_);
  loaded.first_open_ = in.take<std::uint64_t>();
  loaded.ignored_ = in.take<std::uint64_t>();
  const auto count = in.take<std::uint64_t>();
  std::uint64_t expected = loaded.first_open_;
  for (std::uint64_t i = 0; i < count && in.ok(); ++i, ++expected) {
    const auto number = in.take<std::uint64_t>(), ranges = in.take<std::uint64_t>();
    if (number != expected) return corrupt("its epochs do not follow each other");
    Epoch& epoch = loaded.open_epochs_[number];
    for (std::uint64_t r = 0; r < ranges && in.ok(); ++r) {
      const auto begin = in.take<std::int64_t>(), end = in.take<std::int64_t>();
      if (begin < epoch.next || begin >= end || end > size_) return corrupt("its ranges overlap");
      if (begin > epoch.next) loaded.freed_.push_back({0, number, epoch.next, begin});
      loaded.add_range(epoch, begin, end);
      epoch.next = end;
    }
    // Only the last epoch may have positions that nobody ever had.
    if (i + 1 < count && epoch.next < size_) {
      loaded.freed_.push_back({0, number, epoch.next, size_});
      epoch.next = size_;
    }
  }
  if (!in.ok()) return corrupt("it is too short");
  loaded.next_id_ = next_id_;  // old ids stay unknown
  loaded.close_epochs();
  *this = std::move(loaded);
  return {};
}

}  // namespace troupe::learners::data
