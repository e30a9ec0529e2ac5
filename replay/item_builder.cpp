// The open windows: how chunks join them, and how items leave them.
#include "replay/item_builder.hpp"

#include <algorithm>

namespace troupe::replay {

ItemBuilder::ItemBuilder(std::uint32_t n_step, double discount)
    : n_step_(n_step), discount_(discount) {}

void ItemBuilder::Addition::clear() {
  items.clear();
  released.clear();
  dropped_steps = 0;
  continues = false;
  previous = 0;
}

bool ItemBuilder::Seen::contains(std::uint64_t sequence) const {
  if (!any || sequence > newest) return false;
  if (newest - sequence >= kSequenceWindow) return true;
  const std::uint64_t bit = sequence % kSequenceWindow;
  return (bits[bit / 64] >> (bit % 64)) & 1;
}

void ItemBuilder::Seen::insert(std::uint64_t sequence) {
  if (!any || sequence > newest) {
    const std::uint64_t from = any ? newest + 1 : sequence;
    if (!any || sequence - newest >= kSequenceWindow)
      bits.fill(0);
    else
      for (std::uint64_t s = from; s <= sequence; ++s)
        bits[s % kSequenceWindow / 64] &= ~(std::uint64_t{1} << (s % 64));
    newest = sequence;
    any = true;
  }
  bits[sequence % kSequenceWindow / 64] |= std::uint64_t{1} << (sequence % 64);
}

ItemBuilder::Verdict ItemBuilder::judge(const ChunkHeader& header) const {
  const auto found = seen_.find(header.worker);
  if (found == seen_.end() || header.incarnation > found->second.incarnation) return Verdict::kNew;
  if (header.incarnation < found->second.incarnation) return Verdict::kStale;
  return found->second.contains(header.sequence) ? Verdict::kDuplicate : Verdict::kNew;
}

bool ItemBuilder::continues(const Window& window, const ChunkHeader& header) {
  return window.episode == header.episode && window.next_step == header.first_step;
}

// The first step that is still open once the chunk is there: s_{t+n} of all before it is known, or
// the episode is over.
std::uint32_t ItemBuilder::build_limit(std::uint32_t first_open, const ChunkHeader& header) const {
  const std::uint32_t known = header.first_step + header.steps;
  if (header.ends()) return known;
  return std::max(first_open, known - std::min(known, n_step_));
}

std::uint64_t ItemBuilder::forecast(const ChunkHeader& header) const {
  const auto worker = seen_.find(header.worker);
  const bool same_incarnation =
      worker != seen_.end() && worker->second.incarnation == header.incarnation;
  const auto found = windows_.find({header.worker, header.environment});
  std::uint32_t first_open = header.first_step;
  if (same_incarnation && found != windows_.end() && continues(found->second, header))
    first_open = found->second.first_open;
  return build_limit(first_open, header) - first_open;
}

void ItemBuilder::drop(const Window& window, Addition& out) {
  const std::uint32_t steps = window.next_step - window.first_open;
  pending_steps_ -= steps;
  out.dropped_steps += steps;
  for (const OpenChunk& open : window.chunks) out.released.push_back(open.slot);
}

void ItemBuilder::abandon(std::uint32_t worker, Addition& out) {
  const auto first = windows_.lower_bound({worker, 0});
  auto last = first;
  for (; last != windows_.end() && last->first.first == worker; ++last) drop(last->second, out);
  windows_.erase(first, last);
}

void ItemBuilder::mark(const ChunkHeader& header, Addition& out) {
  Seen& seen = seen_[header.worker];
  if (seen.any && header.incarnation > seen.incarnation) {
    abandon(header.worker, out);
    seen = Seen{};
  }
  seen.incarnation = header.incarnation;
  seen.insert(header.sequence);
}

void ItemBuilder::add(const ChunkPtr& chunk, ChunkSlot slot, Addition& out) {
  const ChunkHeader& header = chunk->header;
  mark(header, out);
  const Stream stream{header.worker, header.environment};
  auto found = windows_.find(stream);
  if (found != windows_.end() && !continues(found->second, header)) {
    drop(found->second, out);
    windows_.erase(found);
    found = windows_.end();
  }
  out.continues = found != windows_.end();
  if (out.continues)
    out.previous = found->second.chunks.back().slot;
  else
    found = windows_.emplace(stream, Window{header.episode, 0, header.first_step, {}}).first;
  Window& window = found->second;
  window.next_step = header.first_step + header.steps;
  window.chunks.push_back({slot, chunk});
  pending_steps_ += header.steps;
  build(window, header, out);
  if (header.ends()) windows_.erase(found);
}

void ItemBuilder::build(Window& window, const ChunkHeader& last, Addition& out) {
  const std::uint32_t limit = build_limit(window.first_open, last);
  const std::uint32_t origin = window.chunks.front().chunk->header.first_step;
  rewards_.clear();
  for (const OpenChunk& open : window.chunks)
    rewards_.insert(rewards_.end(), open.chunk->reward.begin(), open.chunk->reward.end());
  auto holder = window.chunks.begin();
  for (std::uint32_t t = window.first_open; t < limit; ++t) {
    while (t >= holder->chunk->header.first_step + holder->chunk->header.steps) ++holder;
    const std::uint32_t k = std::min(n_step_, window.next_step - t);
    double sum = 0, factor = 1;
    for (std::uint32_t i = 0; i < k; ++i, factor *= discount_)
      sum += factor * static_cast<double>(rewards_[t - origin + i]);
    const bool terminal = last.end == EpisodeEnd::kTerminated && t + k == window.next_step;
    out.items.push_back(
        {holder->slot, t - holder->chunk->header.first_step, k, terminal, static_cast<float>(sum)});
  }
  pending_steps_ -= limit - window.first_open;
  window.first_open = limit;
  while (!window.chunks.empty() &&
         (last.ends() || window.chunks.front().chunk->header.first_step +
                                 window.chunks.front().chunk->header.steps <=
                             limit)) {
    out.released.push_back(window.chunks.front().slot);
    window.chunks.pop_front();
  }
}

std::vector<ChunkSlot> ItemBuilder::held_chunks() const {
  std::vector<ChunkSlot> slots;
  for (const auto& [stream, window] : windows_)
    for (const OpenChunk& open : window.chunks) slots.push_back(open.slot);
  return slots;
}

void ItemBuilder::save(ByteWriter& out) const {
  out.put(static_cast<std::uint64_t>(seen_.size()));
  for (const auto& [worker, seen] : seen_) {
    out.put(worker);
    out.put(seen.incarnation);
    out.put(seen.newest);
    out.bytes(seen.bits.data(), sizeof seen.bits);
  }
  out.put(static_cast<std::uint64_t>(windows_.size()));
  for (const auto& [stream, window] : windows_) {
    out.put(stream.first);
    out.put(stream.second);
    out.put(window.episode);
    out.put(window.next_step);
    out.put(window.first_open);
    std::vector<ChunkSlot> slots;
    for (const OpenChunk& open : window.chunks) slots.push_back(open.slot);
    out.array(std::span<const ChunkSlot>(slots));
  }
}

// Whether a chunk may stand in an open window of its stream.
bool ItemBuilder::belongs(const ChunkHeader& header, const Stream& stream,
                          const Window& window) const {
  const auto seen = seen_.find(stream.first);
  return seen != seen_.end() && header.incarnation == seen->second.incarnation &&
         header.worker == stream.first && header.environment == stream.second &&
         header.episode == window.episode && !header.ends();
}

bool ItemBuilder::load(ByteReader& in, const Find& find) {
  *this = ItemBuilder(n_step_, discount_);
  for (auto count = in.take<std::uint64_t>(); count > 0 && in.ok(); --count) {
    const auto worker = in.take<std::uint32_t>();
    Seen seen;
    seen.any = true;
    in.get(seen.incarnation);
    in.get(seen.newest);
    in.raw(seen.bits.data(), sizeof seen.bits);
    seen_.emplace(worker, seen);
  }
  for (auto count = in.take<std::uint64_t>(); count > 0 && in.ok(); --count) {
    Stream stream;
    Window window;
    in.get(stream.first);
    in.get(stream.second);
    in.get(window.episode);
    in.get(window.next_step);
    in.get(window.first_open);
    std::vector<ChunkSlot> slots;
    if (!in.array(slots) || slots.empty()) return false;
    std::uint64_t next = 0;
    for (const ChunkSlot slot : slots) {
      ChunkPtr chunk = find(slot, window.chunks.empty() ? kNoChunk : window.chunks.back().slot);
      if (!chunk) return false;
      const ChunkHeader& header = chunk->header;
      const bool in_place = window.chunks.empty() ? header.first_step <= window.first_open
                                                  : header.first_step == next;
      if (!in_place || !belongs(header, stream, window)) return false;
      next = std::uint64_t{header.first_step} + header.steps;
      window.chunks.push_back({slot, std::move(chunk)});
    }
    if (next != window.next_step || window.first_open > next) return false;
    pending_steps_ += next - window.first_open;
    if (!windows_.emplace(stream, std::move(window)).second) return false;
  }
  return in.ok();
}

}  // namespace troupe::replay
