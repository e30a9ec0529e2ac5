// How the global limiter deals out what may be inserted.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "actors/roles/global_limiter.hpp"

namespace troupe::actors {

std::uint64_t GlobalLimiter::Shard::most() const {
  std::uint64_t most = state.allowed;
  for (const Grant& grant : under_way) most = std::max(most, grant.allowed);
  return most;
}

std::uint64_t GlobalLimiter::Shard::committed() const {
  const std::uint64_t most_now = most();
  return most_now > state.inserted ? most_now - state.inserted : 0;
}

void GlobalLimiter::allow(std::size_t index, std::uint64_t items, std::vector<Grant>& out) {
  Shard& shard = shards_[index];
  const Grant grant{index, shard.state.epoch, ++serial_, items, lead_};
  shard.under_way.push_back(grant);
  out.push_back(grant);
}

std::vector<std::size_t> GlobalLimiter::waiting() const {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < shards_.size(); ++i)
    if (shards_[i].live && shards_[i].state.waiting > shards_[i].committed()) found.push_back(i);
  std::stable_sort(found.begin(), found.end(), [&](std::size_t a, std::size_t b) {
    return shards_[a].served < shards_[b].served;
  });
  return found;
}

std::vector<Grant> GlobalLimiter::grants() {
  std::vector<Grant> out;
  if (options_.samples_per_insert == 0) {
    for (std::size_t i = 0; i < shards_.size(); ++i)
      if (shards_[i].live && shards_[i].latest() != kUnlimited) allow(i, kUnlimited, out);
    return out;
  }
  std::uint64_t free = room();
  for (const Shard& shard : shards_)
    if (shard.live) free -= std::min(free, shard.committed());
  for (const std::size_t index : waiting()) {
    Shard& shard = shards_[index];
    const std::uint64_t need = shard.state.waiting - shard.committed();
    if (need > free) {
      // Nobody overtakes it: what becomes free is kept until its chunk fits.
      take_back(need - free, index, out);
      return out;
    }
    free -= need;
    shard.served = ++turn_;
    allow(index, shard.state.inserted + shard.state.waiting, out);
  }
  spread(free, out);
  return out;
}

void GlobalLimiter::begin_lead(std::uint32_t lead) {
  lead_ = lead;
  for (Shard& shard : shards_) {
    shard.under_way.clear();
    shard.state.serial = shard.state.allowed = 0;
  }
}

std::vector<Grant> GlobalLimiter::unacknowledged() const {
  std::vector<Grant> found;
  for (const Shard& shard : shards_)
    if (shard.live && !shard.under_way.empty()) found.push_back(shard.under_way.back());
  return found;
}

// From the least active shard on. Leave that is on its way back already counts.
void GlobalLimiter::take_back(std::uint64_t items, std::size_t for_shard, std::vector<Grant>& out) {
  std::vector<std::size_t> others;
  for (std::size_t i = 0; i < shards_.size(); ++i) {
    const Shard& shard = shards_[i];
    if (!shard.live || i == for_shard) continue;
    others.push_back(i);
    const std::uint64_t kept = std::max(shard.latest(), shard.state.inserted);
    const std::uint64_t returning = shard.most() > kept ? shard.most() - kept : 0;
    items -= std::min(items, returning);
  }
  std::stable_sort(others.begin(), others.end(), [&](std::size_t a, std::size_t b) {
    return shards_[a].activity < shards_[b].activity;
  });
  for (const std::size_t index : others) {
    if (items == 0) return;
    const Shard& shard = shards_[index];
    // A chunk that waits keeps what it needs, but only if it has all of it.
    const std::uint64_t needed = shard.state.inserted + shard.state.waiting;
    const std::uint64_t floor = shard.latest() >= needed ? needed : shard.state.inserted;
    if (shard.latest() <= floor) continue;
    const std::uint64_t back = std::min(items, shard.latest() - floor);
    items -= back;
    allow(index, shard.latest() - back, out);
  }
}

// Ahead of need, so that a busy shard rarely waits for an answer. Only worth a message once a shard
// has used up half of what it should have.
void GlobalLimiter::spread(std::uint64_t free, std::vector<Grant>& out) {
  const double total = std::accumulate(
      shards_.begin(), shards_.end(), 0.0,
      [](double sum, const Shard& shard) { return sum + (shard.live ? shard.activity : 0); });
  if (total == 0) return;
  const auto items = static_cast<double>(room());
  for (std::size_t i = 0; i < shards_.size() && free > 0; ++i) {
    const Shard& shard = shards_[i];
    if (!shard.live) continue;
    const auto fair = static_cast<std::uint64_t>(std::floor(items * shard.activity / total));
    const std::uint64_t latest = std::max(shard.latest(), shard.state.inserted);
    const std::uint64_t left = latest - shard.state.inserted;
    if (2 * left >= fair) continue;
    const std::uint64_t more = std::min(free, fair - left);
    free -= more;
    allow(i, latest + more, out);
  }
}

}  // namespace troupe::actors
