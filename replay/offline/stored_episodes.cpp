// Sorting chunks into runs, and joining a run's columns.
#include "replay/offline/stored_episodes.hpp"

#include <algorithm>
#include <limits>
#include <tuple>

#include "replay/gather.hpp"
#include "replay/row_reader.hpp"

namespace troupe::replay {
namespace {

constexpr std::uint32_t kNotNeeded = std::numeric_limits<std::uint32_t>::max();

// A chunk and the first of its rows that an item begins in.
struct Held {
  PackedPtr chunk;
  ChunkHeader header;
  std::uint32_t first_row = kNotNeeded;
};

auto stream_of(const ChunkHeader& header) {
  return std::tuple(header.worker, header.incarnation, header.environment, header.episode);
}

bool continues(const ChunkHeader& before, const ChunkHeader& after) {
  return stream_of(before) == stream_of(after) && !before.ends() &&
         before.first_step + before.steps == after.first_step;
}

std::vector<Held> held_chunks(const StoreCut& cut, std::uint64_t spec_hash) {
  std::vector<std::uint32_t> first_rows(cut.chunks.size(), kNotNeeded);
  for (std::size_t i = 0; i < cut.items.size(); ++i) {
    const ItemRecord& item = cut.items[i];
    if (item.live != 0 && item.chunk < first_rows.size())
      first_rows[item.chunk] = std::min<std::uint32_t>(first_rows[item.chunk], item.row);
  }
  std::vector<Held> held;
  for (std::size_t slot = 0; slot < cut.chunks.size(); ++slot)
    if (const PackedChunk* chunk = cut.chunks[slot].chunk; chunk != nullptr)
      held.push_back({PackedPtr::share(chunk), chunk->header(spec_hash), first_rows[slot]});
  std::sort(held.begin(), held.end(), [](const Held& a, const Held& b) {
    return std::tuple_cat(stream_of(a.header), std::tuple(a.header.first_step)) <
           std::tuple_cat(stream_of(b.header), std::tuple(b.header.first_step));
  });
  return held;
}

}  // namespace

bool Episode::operator==(const Episode& other) const {
  return steps.header == other.steps.header && steps.observation == other.steps.observation &&
         steps.step == other.steps.step && steps.reward == other.steps.reward &&
         policies == other.policies;
}

StoredEpisodes::StoredEpisodes(const TableSnapshot& snapshot) : signature_(snapshot.signature) {
  const std::vector<Held> held = held_chunks(snapshot.cut, signature_.spec_hash);
  std::vector<PackedPtr> run;
  std::uint32_t first_needed = kNotNeeded;  // step of the episode
  for (const Held& one : held) {
    const ChunkHeader& header = one.header;
    if (!run.empty() && !continues(run.back()->header(header.spec_hash), header)) {
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
    const ChunkHeader left = a.chunks.front()->header(), right = b.chunks.front()->header();
    return std::tie(left.learner_epoch, left.parameter_version) <
           std::tie(right.learner_epoch, right.parameter_version);
  });
}

void StoredEpisodes::add_run(std::vector<PackedPtr> chunks, std::uint32_t first_needed,
                             std::uint32_t reach) {
  const ChunkHeader last = chunks.back()->header();
  const std::uint32_t begin = chunks.front()->first_step(), end = last.first_step + last.steps;
  // Without an item only an open window needs the steps: it reaches one item back from the end.
  if (first_needed == kNotNeeded) first_needed = end - std::min(reach, end - begin);
  const auto needed = std::find_if(chunks.begin(), chunks.end(), [&](const PackedPtr& chunk) {
    return chunk->first_step() + chunk->steps() > first_needed;
  });
  left_out_ += first_needed - begin;
  if (!last.ends() && end - first_needed < 2) {
    left_out_ += end - first_needed;
    return;
  }
  const std::uint32_t first_row = first_needed - (*needed)->first_step();
  runs_.push_back({{needed, chunks.end()}, first_row});
}

Result<Episode> StoredEpisodes::read(std::size_t index) {
  const Run& run = runs_.at(index);
  Episode episode;
  Chunk& joined = episode.steps;
  RowReader& reader = thread_row_reader();
  joined.header = run.chunks.front()->header(signature_.spec_hash);
  joined.header.first_step += run.first_row;
  joined.header.sequence = 0;
  joined.header.steps = 0;
  joined.header.end = run.chunks.back()->end();
  joined.observation.resize(signature_.observation.size());
  joined.step.resize(signature_.step.size());
  for (const PackedPtr& chunk : run.chunks) {
    const std::uint32_t skip = chunk == run.chunks.front() ? run.first_row : 0;
    const ChunkHeader header = chunk->header();
    const PolicySpan policy{joined.header.steps, header.parameter_version, header.learner_epoch};
    if (episode.policies.empty() ||
        episode.policies.back().parameter_version != policy.parameter_version ||
        episode.policies.back().learner_epoch != policy.learner_epoch)
      episode.policies.push_back(policy);
    bool good = true;
    const auto append = [&](std::vector<std::uint8_t>& to, std::size_t column, std::size_t rows) {
      const std::size_t before = to.size();
      to.resize(before + rows * chunk->layout().columns[column].row_bytes);
      good = reader.copy(*chunk, column, skip, rows, to.data() + before) && good;
    };
    const std::size_t observations = signature_.observation.size();
    for (std::size_t c = 0; c < observations; ++c)
      append(joined.observation[c], c, header.observation_rows() - skip);
    for (std::size_t c = 0; c < signature_.step.size(); ++c)
      append(joined.step[c], observations + c, header.steps - skip);
    if (!good) return corrupt_chunk(*chunk);
    const auto rewards = chunk->rewards();
    joined.reward.insert(joined.reward.end(), rewards.begin() + skip, rewards.end());
    joined.header.steps += header.steps - skip;
  }
  return episode;
}

}  // namespace troupe::replay
