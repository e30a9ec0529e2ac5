// Implements the file described in episode_writer.hpp.
#include "replay/offline/episode_writer.hpp"

#include <functional>
#include <optional>
#include <system_error>

#include "replay/codec.hpp"
#include "replay/file.hpp"
#include "replay/offline/hdf5_access.hpp"
#include "replay/offline/hdf5_library.hpp"
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

class Hdf5Writer final : public EpisodeWriter {
 public:
  Hdf5Writer(fs::path path, EpisodeFileHead head, int level)
      : path_(std::move(path)), temporary_(path_), head_(std::move(head)), level_(level) {
    temporary_ += ".writing";
  }
  ~Hdf5Writer() override {
    (void)hdf5::guarded(temporary_, [&] { file_.reset(); });
    std::error_code ignored;
    if (!committed_) fs::remove(temporary_, ignored);
  }

  Result<void> open() {
    return guarded([&] {
      file_ = create_file(temporary_);
      write_head();
    });
  }

  Result<void> add(const Episode& episode) override {
    const ChunkHeader& header = episode.steps.header;
    if (auto fits = check_shape(episode.steps, head_.signature, {.max_steps = layout::kMostSteps});
        !fits)
      return fits;
    if (!header.ends() && header.steps < 2)
      return fail(ErrorCode::kInvalidArgument,
                  describe(header) + " is one step without its next observation");
    if (auto written = guarded([&] { write_episode(episode); }); !written) return written;
    ++totals_.episodes;
    totals_.complete += episode.complete() ? 1 : 0;
    totals_.steps += header.ends() ? header.steps : header.steps - 1;
    return {};
  }

  void leave_out(std::uint64_t steps) override { left_out_ += steps; }

  Result<EpisodeTotals> commit() override {
    const auto closed = guarded([&] {
      hdf5::put(*file_, layout::kTotalEpisodes, totals_.episodes);
      hdf5::put(*file_, layout::kTotalSteps, totals_.steps);
      hdf5::put(*file_, "complete_episodes", totals_.complete);
      hdf5::put(*file_, "steps_left_out", left_out_);
      file_->close();
      file_.reset();
    });
    if (!closed) return tl::unexpected(closed.error());
    if (auto published = publish_file(temporary_, path_); !published)
      return tl::unexpected(published.error());
    committed_ = true;
    std::error_code ignored;
    totals_.bytes = fs::file_size(path_, ignored);
    return totals_;
  }

 private:
  Result<void> guarded(const std::function<void()>& work) const {
    auto done = hdf5::guarded(temporary_, work);
    if (!done) return fail(ErrorCode::kIo, "cannot write " + done.error().message);
    return {};
  }

  void write_head() const {
    hdf5::put(*file_, "format", std::string(layout::kFormat));
    hdf5::put(*file_, "format_version", layout::kFormatVersion);
    hdf5::put(*file_, "environment", head_.environment);
    hdf5::put(*file_, "spec_hash", head_.signature.spec_hash);
    hdf5::put(*file_, "n_step", static_cast<std::uint64_t>(head_.n_step));
    hdf5::put(*file_, "discount", head_.discount);
    hdf5::put(*file_, layout::kActionUnits, std::string(layout::kPolicyUnits));
    if (head_.action && !head_.action->discrete) {
      hdf5::put(*file_, "action_low", head_.action->low);
      hdf5::put(*file_, "action_high", head_.action->high);
    }
  }

  void write_episode(const Episode& episode) const {
    const Chunk& steps = episode.steps;
    const ChunkHeader& header = steps.header;
    const std::uint32_t count = header.ends() ? header.steps : header.steps - 1;
    const H5::Group group = file_->createGroup(layout::episode_name(totals_.episodes));
    hdf5::put(group, "id", totals_.episodes);
    hdf5::put(group, layout::kTotalSteps, std::uint64_t{count});
    hdf5::put(group, "worker", std::uint64_t{header.worker});
    hdf5::put(group, "incarnation", std::uint64_t{header.incarnation});
    hdf5::put(group, "environment_index", std::uint64_t{header.environment});
    hdf5::put(group, "episode", header.episode);
    hdf5::put(group, layout::kFirstStep, std::uint64_t{header.first_step});
    hdf5::put(group, layout::kEnd, std::string(end_text(header.end)));
    hdf5::put(group, "complete", std::uint64_t{episode.complete() ? 1U : 0U});
    write_observations(group, head_.signature, steps, count + 1, level_);
    write_steps(group, head_.signature, steps, 0, count, level_);
    write_ends(group, header.end, count, level_);
    write_policies(group, episode.policies, level_);
    if (!header.ends())
      write_steps(group.createGroup(layout::kOpenStep), head_.signature, steps, count, 1, level_);
  }

  const fs::path path_;
  fs::path temporary_;
  const EpisodeFileHead head_;
  const int level_;
  std::optional<H5::H5File> file_;
  EpisodeTotals totals_;
  std::uint64_t left_out_ = 0;
  bool committed_ = false;
};

}  // namespace

Result<std::unique_ptr<EpisodeWriter>> create_hdf5_writer(const fs::path& path,
                                                          const EpisodeFileHead& head,
                                                          const EpisodeWriteOptions& options) {
  if (options.deflate < 0 || options.deflate > 9)
    return fail(ErrorCode::kInvalidArgument,
                "the deflate level of " + path.string() + " is not in 0..9");
  auto writer = std::make_unique<Hdf5Writer>(path, head, options.deflate);
  if (auto opened = writer->open(); !opened) return tl::unexpected(opened.error());
  return writer;
}

}  // namespace troupe::replay
