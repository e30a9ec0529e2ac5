// The open windows: how chunks join them, and how items leave them.
#include "replay/item_builder.hpp"

#include <algorithm>
#include <string>

namespace troupe::replay {

Result<void> check_item_shape(const ItemShape& shape) {
  const auto outside = [](const char* name, std::uint32_t value, const std::string& range) {
    return fail(ErrorCode::kInvalidArgument,
                std::string(name) + " " + std::to_string(value) + " is not in " + range);
  };
  const std::string length = std::to_string(shape.length);
  if (shape.length < 1 || shape.length > 65535)
    return outside(shape.is_span() ? "length" : "n_step", shape.length, "1..65535");
  if (shape.kind != ItemShape::Kind::kSequence) {
    for (const auto& [name, given] : {std::pair{"period", shape.period != 1},
                                      {"burn_in", shape.burn_in != 0},
                                      {"across_episodes", shape.across_episodes}})
      if (given)
        return fail(ErrorCode::kInvalidArgument,
                    std::string(name) + " is an option of items that are sequences only");
    return {};
  }
  if (shape.period < 1 || shape.period > shape.length)
    return outside("period", shape.period, "1..length (" + length + ")");
  if (shape.burn_in >= shape.length)
    return outside("burn_in", shape.burn_in, "0..length - 1 (length is " + length + ")");
  return {};
}

ItemBuilder::ItemBuilder(const ItemShape& shape, double discount, std::uint32_t lead)
    : shape_(shape), discount_(discount), lead_(lead) {}

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

bool ItemBuilder::continues(const Window& window, const ChunkHeader& header) const {
  if (window.ended) return header.episode == window.episode + 1 && header.first_step == 0;
  return window.episode == header.episode && window.next_step == header.first_step;
}

template <class Emit>
std::uint64_t ItemBuilder::advance(Progress& p, const ChunkHeader& header, Emit emit) const {
  p.end += header.steps;
  const std::uint64_t length = shape_.length;
  const bool ends = header.ends();
  // s_{t+k} is known: of all steps but the newest, whose successor comes with the next chunk.
  const auto known = [&](std::uint64_t position) {
    return position < p.end || (ends && position == p.end);
  };
  std::uint64_t dropped = 0;
  // A window that begins within an episode has no frames for the stacks of its first steps.
  if (const std::uint64_t whole = p.origin > 0 ? p.origin + lead_ : 0; p.owned < whole) {
    const std::uint64_t skipped = std::min(whole, p.end);
    dropped += skipped - p.owned;
    p.owned = p.next_item = skipped;
  }
  switch (shape_.kind) {
    case ItemShape::Kind::kNStep:
      for (; p.next_item < p.end && (ends || known(p.next_item + length)); ++p.next_item)
        emit(p.next_item, static_cast<std::uint32_t>(std::min(length, p.end - p.next_item)), 1U);
      p.owned = p.next_item;
      break;
    case ItemShape::Kind::kSequence:
      for (; known(p.next_item + length); p.next_item += shape_.period) {
        emit(p.next_item, shape_.length,
             static_cast<std::uint32_t>(p.next_item + length - p.owned));
        p.owned = p.next_item + length;
      }
      if (!ends || shape_.across_episodes) break;
      if (p.owned < p.end && shape_.tail == ItemShape::Tail::kPad)
        emit(p.next_item, static_cast<std::uint32_t>(p.end - p.next_item),
             static_cast<std::uint32_t>(p.end - p.owned));
      else
        dropped += p.end - p.owned;
      p.next_item = p.owned = p.end;
      break;
    case ItemShape::Kind::kEpisode:
      if (!ends) break;
      if (p.origin == 0 && p.end <= length)
        emit(0, static_cast<std::uint32_t>(p.end), static_cast<std::uint32_t>(p.end));
      else
        dropped += p.end - p.owned;
      p.next_item = p.owned = p.end;
      break;
  }
  return dropped;
}

std::uint64_t ItemBuilder::forecast(const ChunkHeader& header) const {
  const auto worker = seen_.find(header.worker);
  const bool same_incarnation =
      worker != seen_.end() && worker->second.incarnation == header.incarnation;
  const auto found = windows_.find({header.worker, header.environment});
  const std::uint64_t first = header.first_step;
  Progress progress{first, first, first, first};
  if (same_incarnation && found != windows_.end() && continues(found->second, header))
    progress = found->second.progress;
  std::uint64_t items = 0;
  advance(progress, header, [&](std::uint64_t, std::uint32_t, std::uint32_t) { ++items; });
  return items;
}

void ItemBuilder::drop(const Window& window, Addition& out) {
  const std::uint64_t steps = window.progress.end - window.progress.owned;
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

void ItemBuilder::add(const PackedPtr& chunk, ChunkSlot slot, Addition& out) {
  const ChunkHeader header = chunk->header();
  mark(header, out);
  const Stream stream{header.worker, header.environment};
  auto found = windows_.find(stream);
  if (found != windows_.end() && !continues(found->second, header)) {
    drop(found->second, out);
    windows_.erase(found);
    found = windows_.end();
  }
  if (found == windows_.end()) {
    const std::uint64_t first = header.first_step;
    found = windows_.emplace(stream, Window{}).first;
    found->second.progress = {first, first, first, first};
  }
  Window& window = found->second;
  out.continues = !window.chunks.empty();
  if (out.continues) out.previous = window.chunks.back().slot;
  window.episode = header.episode;
  window.next_step = header.first_step + header.steps;
  window.ended = header.ends();
  window.chunks.push_back({slot, chunk, window.progress.end});
  pending_steps_ += header.steps;
  build(window, header, out);
  if (header.ends() && !shape_.across_episodes) windows_.erase(found);
}

void ItemBuilder::build(Window& window, const ChunkHeader& last, Addition& out) {
  Progress& progress = window.progress;
  if (!shape_.is_span()) {
    rewards_.clear();
    for (const OpenChunk& open : window.chunks) {
      const auto rewards = open.chunk->rewards();
      rewards_.insert(rewards_.end(), rewards.begin(), rewards.end());
    }
  }
  const std::uint64_t before = progress.owned;
  // Of the chunks that hold an item's first step and its first row.
  auto holder = window.chunks.begin(), first = window.chunks.begin();
  const std::uint64_t dropped = advance(
      progress, last, [&](std::uint64_t position, std::uint32_t steps, std::uint32_t owned) {
        while (position >= holder->end()) ++holder;
        const std::uint64_t in_episode = holder->chunk->first_step() + position - holder->first;
        const auto lead = static_cast<std::uint32_t>(
            std::min<std::uint64_t>({lead_, in_episode, position - window.chunks.front().first}));
        while (position - lead >= first->end()) ++first;
        BuiltItem item{.chunk = first->slot,
                       .row = static_cast<std::uint32_t>(position - lead - first->first),
                       .lead = lead,
                       .steps = steps,
                       .owned = owned};
        if (!shape_.is_span()) add_return(item, window, last, position);
        out.items.push_back(item);
      });
  out.dropped_steps += dropped;
  pending_steps_ -= progress.owned - before;
  const bool over = last.ends() && !shape_.across_episodes;
  const std::uint64_t needed = first_needed(progress);
  while (!window.chunks.empty() && (over || window.chunks.front().end() <= needed)) {
    out.released.push_back(window.chunks.front().slot);
    window.chunks.pop_front();
  }
}

void ItemBuilder::add_return(BuiltItem& item, const Window& window, const ChunkHeader& last,
                             std::uint64_t position) const {
  const float* rewards = rewards_.data() + (position - window.chunks.front().first);
  double sum = 0, factor = 1;
  for (std::uint32_t i = 0; i < item.steps; ++i, factor *= discount_)
    sum += factor * static_cast<double>(rewards[i]);
  item.reward = static_cast<float>(sum);
  item.terminal =
      last.end == EpisodeEnd::kTerminated && position + item.steps == window.progress.end;
}

std::vector<ChunkSlot> ItemBuilder::held_chunks() const {
  std::vector<ChunkSlot> slots;
  for (const auto& [stream, window] : windows_)
    for (const OpenChunk& open : window.chunks) slots.push_back(open.slot);
  return slots;
}

std::uint64_t ItemBuilder::memory_bytes() const {
  // A node of a map has four words of its own, a deque one block of 512 bytes.
  constexpr std::uint64_t kNode = 4 * sizeof(void*), kDeque = 576;
  return seen_.size() * (sizeof(Seen) + kNode) +
         windows_.size() * (sizeof(Window) + kNode + kDeque);
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
    out.put(static_cast<std::uint8_t>(window.ended));
    for (const std::uint64_t position : {window.progress.origin, window.progress.end,
                                         window.progress.next_item, window.progress.owned})
      out.put(position);
    std::vector<ChunkSlot> slots;
    for (const OpenChunk& open : window.chunks) slots.push_back(open.slot);
    out.array(std::span<const ChunkSlot>(slots));
  }
}

// Whether a chunk may stand in an open window of its stream.
bool ItemBuilder::belongs(const ChunkHeader& header, const Stream& stream) const {
  const auto seen = seen_.find(stream.first);
  return seen != seen_.end() && header.incarnation == seen->second.incarnation &&
         header.worker == stream.first && header.environment == stream.second &&
         (!header.ends() || shape_.across_episodes);
}

bool ItemBuilder::load(ByteReader& in, const Find& find) {
  *this = ItemBuilder(shape_, discount_, lead_);
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
    window.ended = in.take<std::uint8_t>() != 0;
    for (std::uint64_t* position : {&window.progress.origin, &window.progress.end,
                                    &window.progress.next_item, &window.progress.owned})
      in.get(*position);
    std::vector<ChunkSlot> slots;
    if (!in.array(slots) || !load_chunks(window, stream, slots, find)) return false;
    pending_steps_ += window.progress.end - window.progress.owned;
    if (!windows_.emplace(stream, std::move(window)).second) return false;
  }
  return in.ok();
}

// False when the chunks are not the consecutive ones that the window says.
bool ItemBuilder::load_chunks(Window& window, const Stream& stream,
                              const std::vector<ChunkSlot>& slots, const Find& find) const {
  const Progress& progress = window.progress;
  if (window.ended && !shape_.across_episodes) return false;
  if (progress.origin > progress.owned || progress.owned > progress.end ||
      progress.origin > progress.next_item || progress.next_item > progress.end)
    return false;
  // Only a sequence leaves steps to its successor that it owns itself, as many as the two share.
  const std::uint64_t shared =
      shape_.kind == ItemShape::Kind::kSequence ? shape_.length - shape_.period : 0;
  if (progress.owned < progress.next_item || progress.owned - progress.next_item > shared)
    return false;
  if (progress.origin > 0 && progress.owned >= progress.origin + lead_ &&
      progress.next_item < progress.origin + lead_)
    return false;
  // Counted back from the end, where the positions are known.
  std::uint64_t end = progress.end;
  for (std::size_t i = slots.size(); i-- > 0;) {
    PackedPtr chunk = find(slots[i], i == 0 ? kNoChunk : slots[i - 1]);
    if (!chunk || !belongs(chunk->header(), stream) || chunk->steps() > end - progress.origin)
      return false;
    const ChunkHeader header = chunk->header();
    Window expected;  // as the window stood before the chunk that follows
    expected.episode = header.episode;
    expected.next_step = header.first_step + header.steps;
    expected.ended = header.ends();
    if (window.chunks.empty()) {
      if (expected.episode != window.episode || expected.next_step != window.next_step ||
          expected.ended != window.ended)
        return false;
    } else if (!continues(expected, window.chunks.front().chunk->header())) {
      return false;
    }
    end -= header.steps;
    window.chunks.push_front({slots[i], std::move(chunk), end});
  }
  return window.chunks.empty() ? progress.next_item == progress.end && lead_ == 0
                               : end <= first_needed(progress);
}

}  // namespace troupe::replay
