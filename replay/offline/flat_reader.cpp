// Cuts flat columns into episodes at their terminals and timeouts.
#include "replay/offline/flat_reader.hpp"

#include <optional>

#include "replay/offline/columns.hpp"

namespace troupe::replay {

namespace fs = std::filesystem;
using hdf5::Hdf5Fault;
using hdf5::StoredColumn;

namespace {

class FlatFile final : public EpisodeFile {
 public:
  FlatFile(fs::path path, const H5::H5File& file, Signature signature, EpisodeFileInfo info)
      : path_(std::move(path)),
        file_(file),
        signature_(std::move(signature)),
        rewards_(StoredColumn(file_, layout::kRewards)) {
    info_ = std::move(info);
    info_.layout = "d4rl";
    open_columns();
    cut();
  }
  ~FlatFile() override {
    (void)hdf5::guarded(path_, [this] { close(); });
  }

  std::size_t size() const override { return ranges_.size(); }

  Result<Episode> read(std::size_t index) override {
    Episode episode;
    auto good = hdf5::guarded(path_, [&] { episode = read_range(index); });
    if (!good) return tl::unexpected(good.error());
    return episode;
  }

 private:
  struct Range {
    std::uint64_t first = 0, rows = 0;
    EpisodeEnd end = EpisodeEnd::kContinues;
  };

  void close() {
    observations_.clear();
    next_observations_.clear();
    steps_.clear();
    rewards_ = {};
    file_.close();
  }

  void open_columns() {
    const std::uint64_t rows = rewards_->rows();
    const auto take = [&](StoredColumn stored, const Column& column,
                          std::vector<StoredColumn>& columns) {
      expect_rows(stored, rows);
      expect_elements(stored, column);
      info_.columns.push_back(stored.name() + " [" + std::to_string(stored.elements()) + "]");
      columns.push_back(std::move(stored));
    };
    for (const Column& column : signature_.observation) {
      take(observation_column(file_, layout::kObservations, signature_, column), column,
           observations_);
      if (hdf5::has_dataset(file_, layout::kNextObservations) ||
          hdf5::has_group(file_, layout::kNextObservations))
        take(observation_column(file_, layout::kNextObservations, signature_, column), column,
             next_observations_);
    }
    for (const Column& column : signature_.step)
      take(step_column(file_, column.name), column, steps_);
  }

  std::vector<std::uint8_t> flags(const char* name) const {
    if (!hdf5::has_dataset(file_, name)) return std::vector<std::uint8_t>(rewards_->rows(), 0);
    const StoredColumn stored(file_, name);
    expect_rows(stored, rewards_->rows());
    if (stored.elements() != 1)
      throw Hdf5Fault(ErrorCode::kCorrupt,
                      "dataset '" + stored.name() + "' has more than one number a row");
    return stored.read_flags();
  }

  void cut() {
    const bool has_next = !next_observations_.empty();
    const auto terminals = flags(layout::kTerminals), timeouts = flags(layout::kTimeouts);
    std::uint64_t first = 0;
    const auto close_range = [&](std::uint64_t next, EpisodeEnd end) {
      ranges_.push_back({first, next - first, end});
      first = next;
    };
    for (std::uint64_t row = 0; row < rewards_->rows(); ++row) {
      if (terminals[row] != 0)
        close_range(row + 1, EpisodeEnd::kTerminated);
      else if (timeouts[row] != 0)
        close_range(row + 1, has_next ? EpisodeEnd::kTruncated : EpisodeEnd::kContinues);
    }
    if (first < rewards_->rows()) close_range(rewards_->rows(), EpisodeEnd::kContinues);
  }

  Episode read_range(std::size_t index) const {
    const Range& range = ranges_.at(index);
    const std::string name = "the episode of rows " + std::to_string(range.first) + "-" +
                             std::to_string(range.first + range.rows - 1);
    if (range.rows > layout::kMostSteps)
      throw Hdf5Fault(ErrorCode::kCorrupt,
                      name + " is longer than " + std::to_string(layout::kMostSteps) + " steps");
    Episode episode;
    episode.policies = {PolicySpan{}};
    Chunk& steps = episode.steps;
    steps.header.episode = index;
    steps.header.steps = static_cast<std::uint32_t>(range.rows);
    steps.header.end = range.end;
    steps.header.spec_hash = signature_.spec_hash;
    for (std::size_t c = 0; c < observations_.size(); ++c) {
      const DType type = signature_.observation[c].dtype;
      std::vector<std::uint8_t>& column = steps.observation.emplace_back();
      observations_[c].read(range.first, range.rows, type, column);
      if (!steps.header.ends()) continue;
      const StoredColumn& last =
          next_observations_.empty() ? observations_[c] : next_observations_[c];
      last.read(range.first + range.rows - 1, 1, type, column);
    }
    for (std::size_t c = 0; c < steps_.size(); ++c)
      steps_[c].read(range.first, range.rows, signature_.step[c].dtype, steps.step.emplace_back());
    if (rewards_->elements() != 1)
      throw Hdf5Fault(ErrorCode::kCorrupt, "dataset 'rewards' has more than one number a row");
    steps.reward = rewards_->read_floats(range.first, range.rows);
    check_episode(episode, signature_, name);
    return episode;
  }

  fs::path path_;
  H5::H5File file_;
  Signature signature_;
  std::optional<StoredColumn> rewards_;
  std::vector<StoredColumn> observations_, next_observations_, steps_;
  std::vector<Range> ranges_;
};

}  // namespace

std::unique_ptr<EpisodeFile> open_flat_file(const fs::path& path, const H5::H5File& file,
                                            const Signature& signature, EpisodeFileInfo info) {
  return std::make_unique<FlatFile>(path, file, signature, std::move(info));
}

}  // namespace troupe::replay
