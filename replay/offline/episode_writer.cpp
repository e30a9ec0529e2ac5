// Implements the file described in episode_writer.hpp.
#include "replay/offline/episode_writer.hpp"

#include <optional>
#include <system_error>

#include "replay/codec.hpp"
#include "replay/file.hpp"
#include "replay/offline/hdf5_access.hpp"
#include "replay/offline/layout.hpp"

namespace troupe::replay {

namespace fs = std::filesystem;

namespace {

H5::H5File create_file(const fs::path& path) {
  H5::FileAccPropList access;
  // The compact forms of HDF5 1.10: a column of one chunk then needs no index of 2 KiB.
  access.setLibverBounds(H5F_LIBVER_V110, H5F_LIBVER_V110);
  return {path.string(), H5F_ACC_TRUNC, H5::FileCreatPropList::DEFAULT, access};
}

const char* end_text(EpisodeEnd end) {
  if (end == EpisodeEnd::kTerminated) return layout::kTerminated;
  return end == EpisodeEnd::kTruncated ? layout::kTruncated : layout::kOpen;
}

// Writes rows [first, first + count) of every step column and of the rewards.
void write_steps(const H5::Group& group, const Signature& signature, const Chunk& steps,
                 std::uint32_t first, std::uint32_t count, int level) {
  std::optional<H5::Group> extras;
  for (std::size_t c = 0; c < signature.step.size(); ++c) {
    Column column = signature.step[c];
    const std::uint8_t* rows = steps.step[c].data() + first * column.bytes();
    const bool is_action = column.name == layout::kActionColumn;
    if (is_action) column.name = layout::kActions;
    if (!is_action && !extras) extras = group.createGroup(layout::kExtras);
    hdf5::write_column(is_action ? group : *extras, column, count, rows, level);
  }
  hdf5::write_column(group, {layout::kRewards, DType::kF32, {}}, count, steps.reward.data() + first,
                     level);
}

void write_observations(const H5::Group& group, const Signature& signature, const Chunk& steps,
                        std::uint32_t rows, int level) {
  if (signature.observation.size() == 1) {
    Column column = signature.observation.front();
    column.name = layout::kObservations;
    return hdf5::write_column(group, column, rows, steps.observation.front().data(), level);
  }
  const H5::Group columns = group.createGroup(layout::kObservations);
  for (std::size_t c = 0; c < signature.observation.size(); ++c)
    hdf5::write_column(columns, signature.observation[c], rows, steps.observation[c].data(), level);
}

void write_ends(const H5::Group& group, EpisodeEnd end, std::uint32_t steps, int level) {
  std::vector<std::uint8_t> flags(steps, 0);
  flags.back() = end == EpisodeEnd::kTerminated ? 1 : 0;
  hdf5::write_flags(group, layout::kTerminations, flags, level);
  flags.back() = end == EpisodeEnd::kTerminated ? 0 : 1;
  hdf5::write_flags(group, layout::kTruncations, flags, level);
}

void write_policies(const H5::Group& group, const std::vector<PolicySpan>& policies, int level) {
  std::vector<std::uint64_t> table;
  for (const PolicySpan& span : policies)
    table.insert(table.end(), {span.row, span.parameter_version, span.learner_epoch});
  hdf5::write_column(group, {layout::kPolicies, DType::kU64, {3}}, policies.size(), table.data(),
                     level);
}

}  // namespace

struct EpisodeWriter::Impl {
  fs::path path, temporary;
  EpisodeFileHead head;
  int level = 0;
  std::optional<H5::H5File> file;
  EpisodeTotals totals{};
  std::uint64_t left_out = 0;
  bool committed = false;

  void write_head() const {
    hdf5::put(*file, "format", std::string(layout::kFormat));
    hdf5::put(*file, "format_version", layout::kFormatVersion);
    hdf5::put(*file, "environment", head.environment);
    hdf5::put(*file, "spec_hash", head.signature.spec_hash);
    hdf5::put(*file, "n_step", static_cast<std::uint64_t>(head.n_step));
    hdf5::put(*file, "discount", head.discount);
    hdf5::put(*file, layout::kActionUnits, std::string(layout::kPolicyUnits));
    if (head.action && !head.action->discrete) {
      hdf5::put(*file, "action_low", head.action->low);
      hdf5::put(*file, "action_high", head.action->high);
    }
  }

  void write_episode(const Episode& episode) const {
    const Chunk& steps = episode.steps;
    const ChunkHeader& header = steps.header;
    const std::uint32_t count = header.ends() ? header.steps : header.steps - 1;
    const H5::Group group = file->createGroup(layout::episode_name(totals.episodes));
    hdf5::put(group, "id", totals.episodes);
    hdf5::put(group, layout::kTotalSteps, std::uint64_t{count});
    hdf5::put(group, "worker", std::uint64_t{header.worker});
    hdf5::put(group, "incarnation", std::uint64_t{header.incarnation});
    hdf5::put(group, "environment_index", std::uint64_t{header.environment});
    hdf5::put(group, "episode", header.episode);
    hdf5::put(group, layout::kFirstStep, std::uint64_t{header.first_step});
    hdf5::put(group, layout::kEnd, std::string(end_text(header.end)));
    hdf5::put(group, "complete", std::uint64_t{episode.complete() ? 1U : 0U});
    write_observations(group, head.signature, steps, count + 1, level);
    write_steps(group, head.signature, steps, 0, count, level);
    write_ends(group, header.end, count, level);
    write_policies(group, episode.policies, level);
    if (!header.ends())
      write_steps(group.createGroup(layout::kOpenStep), head.signature, steps, count, 1, level);
  }
};

Result<std::unique_ptr<EpisodeWriter>> EpisodeWriter::create(const fs::path& path,
                                                             const EpisodeFileHead& head,
                                                             const EpisodeWriteOptions& options) {
  if (options.deflate < 0 || options.deflate > 9)
    return fail(ErrorCode::kInvalidArgument,
                "the deflate level of " + path.string() + " is not in 0..9");
  auto impl = std::make_unique<Impl>();
  impl->path = path;
  impl->temporary = path;
  impl->temporary += ".writing";
  impl->head = head;
  impl->level = options.deflate;
  std::unique_ptr<EpisodeWriter> writer(new EpisodeWriter(std::move(impl)));
  Impl& state = *writer->impl_;
  auto opened = hdf5::guarded(state.temporary, [&] {
    state.file = create_file(state.temporary);
    state.write_head();
  });
  if (!opened) return fail(ErrorCode::kIo, "cannot write " + opened.error().message);
  return writer;
}

EpisodeWriter::EpisodeWriter(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

EpisodeWriter::~EpisodeWriter() {
  (void)hdf5::guarded(impl_->temporary, [&] { impl_->file.reset(); });
  std::error_code ignored;
  if (!impl_->committed) fs::remove(impl_->temporary, ignored);
}

Result<void> EpisodeWriter::add(const Episode& episode) {
  const ChunkHeader& header = episode.steps.header;
  if (auto fits =
          check_shape(episode.steps, impl_->head.signature, {.max_steps = layout::kMostSteps});
      !fits)
    return fits;
  if (!header.ends() && header.steps < 2)
    return fail(ErrorCode::kInvalidArgument,
                describe(header) + " is one step without its next observation");
  auto written = hdf5::guarded(impl_->temporary, [&] { impl_->write_episode(episode); });
  if (!written) return fail(ErrorCode::kIo, "cannot write " + written.error().message);
  ++impl_->totals.episodes;
  impl_->totals.complete += episode.complete() ? 1 : 0;
  impl_->totals.steps += header.ends() ? header.steps : header.steps - 1;
  return {};
}

void EpisodeWriter::leave_out(std::uint64_t steps) { impl_->left_out += steps; }

Result<EpisodeTotals> EpisodeWriter::commit() {
  Impl& state = *impl_;
  const auto closed = hdf5::guarded(state.temporary, [&] {
    hdf5::put(*state.file, layout::kTotalEpisodes, state.totals.episodes);
    hdf5::put(*state.file, layout::kTotalSteps, state.totals.steps);
    hdf5::put(*state.file, "complete_episodes", state.totals.complete);
    hdf5::put(*state.file, "steps_left_out", state.left_out);
    state.file->close();
    state.file.reset();
  });
  if (!closed) return fail(ErrorCode::kIo, "cannot write " + closed.error().message);
  if (auto published = publish_file(state.temporary, state.path); !published)
    return tl::unexpected(published.error());
  state.committed = true;
  std::error_code ignored;
  state.totals.bytes = fs::file_size(state.path, ignored);
  return state.totals;
}

}  // namespace troupe::replay
