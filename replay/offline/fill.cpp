// Cuts episodes into chunks of a size at which a table lets go of them bit by bit.
#include "replay/offline/fill.hpp"

#include <algorithm>

namespace troupe::replay {
namespace {

constexpr std::uint32_t kChunkSteps = 256;

std::vector<std::uint8_t> rows_of(const std::vector<std::uint8_t>& column, std::size_t row_bytes,
                                  std::uint32_t first, std::uint32_t count) {
  const auto begin = column.begin() + static_cast<std::ptrdiff_t>(first * row_bytes);
  return {begin, begin + static_cast<std::ptrdiff_t>(count * row_bytes)};
}

// Steps [first, last) of the episode; its end and last observation go to the last piece.
std::shared_ptr<Chunk> piece_of(const Chunk& steps, const Signature& signature, std::uint32_t first,
                                std::uint32_t last) {
  auto piece = std::make_shared<Chunk>();
  ChunkHeader& header = piece->header;
  header = steps.header;
  header.first_step += first;
  header.steps = last - first;
  if (last < steps.header.steps) header.end = EpisodeEnd::kContinues;
  for (std::size_t c = 0; c < signature.observation.size(); ++c)
    piece->observation.push_back(rows_of(steps.observation[c], signature.observation[c].bytes(),
                                         first, header.observation_rows()));
  for (std::size_t c = 0; c < signature.step.size(); ++c)
    piece->step.push_back(rows_of(steps.step[c], signature.step[c].bytes(), first, header.steps));
  piece->reward.assign(steps.reward.begin() + first, steps.reward.begin() + last);
  return piece;
}

class Filler {
 public:
  Filler(Table& table, const FillOptions& options) : table_(table), options_(options) {}

  Result<void> add(Episode episode, std::size_t index, bool policy_units) {
    if (!policy_units && options_.convert_actions)
      if (auto good = options_.convert_actions(episode.steps); !good) return good;
    ChunkHeader& header = episode.steps.header;
    header.worker = kFillWorker;
    header.incarnation = 0;
    header.environment = 0;
    header.episode = index;
    if (!options_.keep_versions) episode.policies = {PolicySpan{}};
    for (std::size_t i = 0; i < episode.policies.size(); ++i) {
      const PolicySpan& span = episode.policies[i];
      header.parameter_version = span.parameter_version;
      header.learner_epoch = span.learner_epoch;
      const std::uint32_t last =
          i + 1 < episode.policies.size() ? episode.policies[i + 1].row : header.steps;
      if (auto good = add_rows(episode.steps, span.row, last); !good) return good;
    }
    table_.abandon(kFillWorker);  // an open end stays without what would follow it
    ++report_.episodes;
    report_.complete += episode.complete() ? 1 : 0;
    report_.steps += header.steps;
    return {};
  }

  void skip(const Error& error) {
    if (report_.skipped_episodes++ == 0) report_.first_skipped = error.message;
  }

  const FillReport& report() const { return report_; }

 private:
  Result<void> add_rows(const Chunk& steps, std::uint32_t first, std::uint32_t last) {
    for (; first < last; first += kChunkSteps) {
      auto piece = piece_of(steps, table_.signature(), first, std::min(last, first + kChunkSteps));
      piece->header.sequence = sequence_++;
      const InsertOutcome outcome = table_.prefill(piece);
      if (outcome.kind != InsertOutcome::Kind::kAccepted) return tl::unexpected(outcome.error);
    }
    return {};
  }

  Table& table_;
  const FillOptions& options_;
  FillReport report_;
  std::uint64_t sequence_ = 0;
};

}  // namespace

Result<FillReport> fill(Table& table, EpisodeSource& source, const FillOptions& options) {
  Filler filler(table, options);
  for (std::size_t index = options.part; index < source.size(); index += options.parts) {
    auto episode = source.read(index);
    if (episode) {
      if (auto added = filler.add(*std::move(episode), index, source.actions_in_policy_units());
          !added)
        return tl::unexpected(added.error());
    } else if (episode.error().code == ErrorCode::kNotFinite ||
               episode.error().code == ErrorCode::kInvalidEpisode) {
      filler.skip(episode.error());
    } else {
      return tl::unexpected(episode.error());
    }
  }
  return filler.report();
}

}  // namespace troupe::replay
