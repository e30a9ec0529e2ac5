// Sorting chunks into runs, and joining a run's columns.
#include "replay/offline/stored_episodes.hpp"

#include <algorithm>
#include <limits>
#include <tuple>

namespace troupe::replay {
namespace {

constexpr std::uint32_t kNotNeeded = std::numeric_limits<std::uint32_t>::max();

// A chunk and the first of its rows that an item begins in.
struct Held {
  ChunkPtr chunk;
  std::uint32_t first_row = kNotNeeded;
};

auto stream_of(const ChunkHeader& header) {
  return std::tuple(header.worker, header.incarnation, header.environment, header.episode);
}

bool continues(const ChunkHeader& before, const ChunkHeader& after) {
  return stream_of(before) == stream_of(after) && !before.ends() &&
         before.first_step + before.steps == after.first_step;
}

std::vector<Held> held_chunks(const StoreCut& cut) {
  std::vector<std::uint32_t> first_rows(cut.chunks.size(), kNotNeeded);
  for (const ItemRecord& item : cut.items)
    if (item.live != 0 && item.chunk < first_rows.size())
      first_rows[item.chunk] = std::min(first_rows[item.chunk], item.row);
  std::vector<Held> held;
  for (std::size_t slot = 0; slot < cut.chunks.size(); ++slot)
    if (cut.chunks[slot].chunk) held.push_back({cut.chunks[slot].chunk, first_rows[slot]});
  std::sort(held.begin(), held.end(), [](const Held& a, const Held& b) {
    return std::tuple_cat(stream_of(a.chunk->header), std::tuple(a.chunk->header.first_step)) <
           std::tuple_cat(stream_of(b.chunk->header), std::tuple(b.chunk->header.first_step));
  });
  return held;
}

void append(std::vector<std::uint8_t>& to, const std::vector<std::uint8_t>& from,
            std::size_t first_byte, std::size_t bytes) {
  const auto begin = from.begin() + static_cast<std::ptrdiff_t>(first_byte);
  to.insert(to.end(), begin, begin + static_cast<std::ptrdiff_t>(bytes));
}

}  // namespace

bool Episode::operator==(const Episode& other) const {
  return steps.header == other.steps.header && steps.observation == other.steps.observation &&
         steps.step == other.steps.step && steps.reward == other.steps.reward &&
         policies == other.policies;
}

StoredEpisodes::StoredEpisodes(const TableSnapshot& snapshot) : signature_(snapshot.signature) {
  const std::vector<Held> held = held_chunks(snapshot.cut);
  std::vector<ChunkPtr> run;
  std::uint32_t first_needed = kNotNeeded;  // step of the episode
  for (const Held& one : held) {
    const ChunkHeader& header = one.chunk->header;
    if (!run.empty() && !continues(run.back()->header, header)) {
      add_run(std::exchange(run, {}), first_needed, snapshot.options.shape().length);
      first_needed = kNotNeeded;
    }
    run.push_back(one.chunk);
    if (one.first_row != kNotNeeded)
      first_needed = std::min(first_needed, header.first_step + one.first_row);
  }
  if (!run.empty()) add_run(std::move(run), first_needed, snapshot.options.shape().length);
  // The sort is stable: what one policy did stays in the order of workers and episodes.
  std::stable_sort(runs_.begin(), runs_.end(), [](const Run& a, const Run& b) {
    const ChunkHeader &left = a.chunks.front()->header, &right = b.chunks.front()->header;
    return std::tie(left.learner_epoch, left.parameter_version) <
           std::tie(right.learner_epoch, right.parameter_version);
  });
}

void StoredEpisodes::add_run(std::vector<ChunkPtr> chunks, std::uint32_t first_needed,
                             std::uint32_t reach) {
  const ChunkHeader& last = chunks.back()->header;
  const std::uint32_t begin = chunks.front()->header.first_step, end = last.first_step + last.steps;
  // Without an item only an open window needs the steps: it reaches one item back from the end.
  if (first_needed == kNotNeeded) first_needed = end - std::min(reach, end - begin);
  const auto needed = std::find_if(chunks.begin(), chunks.end(), [&](const ChunkPtr& chunk) {
    return chunk->header.first_step + chunk->header.steps > first_needed;
  });
  left_out_ += first_needed - begin;
  if (!last.ends() && end - first_needed < 2) {
    left_out_ += end - first_needed;
    return;
  }
  const std::uint32_t first_row = first_needed - (*needed)->header.first_step;
  runs_.push_back({{needed, chunks.end()}, first_row});
}

Result<Episode> StoredEpisodes::read(std::size_t index) {
  const Run& run = runs_.at(index);
  Episode episode;
  Chunk& joined = episode.steps;
  joined.header = run.chunks.front()->header;
  joined.header.first_step += run.first_row;
  joined.header.sequence = 0;
  joined.header.steps = 0;
  joined.header.end = run.chunks.back()->header.end;
  joined.observation.resize(signature_.observation.size());
  joined.step.resize(signature_.step.size());
  for (const ChunkPtr& chunk : run.chunks) {
    const std::uint32_t skip = chunk == run.chunks.front() ? run.first_row : 0;
    const ChunkHeader& header = chunk->header;
    const PolicySpan policy{joined.header.steps, header.parameter_version, header.learner_epoch};
    if (episode.policies.empty() ||
        episode.policies.back().parameter_version != policy.parameter_version ||
        episode.policies.back().learner_epoch != policy.learner_epoch)
      episode.policies.push_back(policy);
    for (std::size_t c = 0; c < signature_.observation.size(); ++c) {
      const std::size_t row = signature_.observation[c].bytes();
      append(joined.observation[c], chunk->observation[c], skip * row,
             (header.observation_rows() - skip) * row);
    }
    for (std::size_t c = 0; c < signature_.step.size(); ++c) {
      const std::size_t row = signature_.step[c].bytes();
      append(joined.step[c], chunk->step[c], skip * row, (header.steps - skip) * row);
    }
    joined.reward.insert(joined.reward.end(), chunk->reward.begin() + skip, chunk->reward.end());
    joined.header.steps += header.steps - skip;
  }
  return episode;
}

}  // namespace troupe::replay
