// Runs of keys, or a doubly linked list in an array that the key indexes.
#include "replay/selectors/ordered.hpp"

#include "replay/selectors/saved_keys.hpp"

namespace troupe::replay {

void OrderedSelector::extend(std::deque<Run>& runs, Key key) {
  if (!runs.empty() && runs.back().last() + 1 == key)
    ++runs.back().count;
  else
    runs.push_back({key, 1});
}

void OrderedSelector::insert(Key key, std::optional<double> /*priority*/) {
  if (linked())
    link(key);
  else
    extend(runs_, key);
  ++size_;
}

void OrderedSelector::link(Key key) {
  if (key >= links_.size()) links_.resize(std::size_t{key} + 1);
  links_[key] = {newest_, kNone};
  (newest_ == kNone ? oldest_ : links_[newest_].after) = key;
  newest_ = key;
}

void OrderedSelector::link_all() {
  oldest_ = newest_ = kNone;
  for (const Run& run : runs_)
    for (std::uint32_t i = 0; i < run.count; ++i) link(run.first + i);
  runs_.clear();
}

void OrderedSelector::erase(Key key) {
  if (!linked()) {
    if (key == runs_.front().first) {
      ++runs_.front().first;
      if (--runs_.front().count == 0) runs_.pop_front();
      --size_;
      return;
    }
    if (key == runs_.back().last()) {
      if (--runs_.back().count == 0) runs_.pop_back();
      --size_;
      return;
    }
    link_all();
  }
  const Links links = links_[key];
  (links.before == kNone ? oldest_ : links_[links.before].after) = links.after;
  (links.after == kNone ? newest_ : links_[links.after].before) = links.before;
  // Empty, it may begin anew with runs.
  if (--size_ == 0) links_ = {};
}

std::uint64_t OrderedSelector::memory_bytes() const {
  return sizeof(Run) * runs_.size() + sizeof(Links) * links_.capacity();
}

Selector::Population OrderedSelector::population() const {
  if (size_ == 0) return {};
  return {static_cast<double>(size_), 1.0};
}

void OrderedSelector::save(ByteWriter& out) const {
  std::deque<Run> runs = runs_;
  for (std::uint32_t key = linked() ? oldest_ : kNone; key != kNone; key = links_[key].after)
    extend(runs, key);
  const std::vector<Run> saved(runs.begin(), runs.end());
  out.array(std::span<const Run>(saved));
}

bool OrderedSelector::load(ByteReader& in, const std::vector<bool>& live) {
  std::vector<Run> runs;
  if (!in.array(runs)) return false;
  std::vector<Key> keys;
  for (const Run& run : runs) {
    if (run.count == 0 || run.first >= live.size() || run.count > live.size() - run.first ||
        keys.size() + run.count > live.size())
      return false;
    for (std::uint32_t i = 0; i < run.count; ++i) keys.push_back(run.first + i);
  }
  if (!are_live_keys(keys, live)) return false;
  runs_.assign(runs.begin(), runs.end());
  links_ = {};
  oldest_ = newest_ = kNone;
  size_ = keys.size();
  return true;
}

}  // namespace troupe::replay
