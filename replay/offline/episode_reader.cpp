// Tells the layouts apart, and reads the one with a group for each episode.
#include "replay/offline/episode_reader.hpp"

#include <cstring>
#include <limits>
#include <system_error>

#include "replay/offline/columns.hpp"
#include "replay/offline/flat_reader.hpp"
#include "replay/offline/hdf5_library.hpp"

namespace troupe::replay {

namespace fs = std::filesystem;
using hdf5::Hdf5Fault;
using hdf5::StoredColumn;

namespace {

Hdf5Fault corrupt(const std::string& what) { return {ErrorCode::kCorrupt, what}; }

template <class To>
To narrowed(const H5::Group& group, const char* attribute) {
  const std::uint64_t value = hdf5::get(group, attribute, std::uint64_t{0});
  if (value > std::numeric_limits<To>::max())
    throw corrupt("attribute '" + std::string(attribute) + "' is " + std::to_string(value) +
                  ", more than it may be");
  return static_cast<To>(value);
}

class GroupedFile final : public EpisodeFile {
 public:
  GroupedFile(fs::path path, const H5::H5File& file, Signature signature, EpisodeFileInfo info)
      : path_(std::move(path)), file_(file), signature_(std::move(signature)) {
    info_ = std::move(info);
    while (hdf5::has_group(file_, layout::episode_name(episodes_))) ++episodes_;
    const auto said = hdf5::get(file_, layout::kTotalEpisodes, std::uint64_t{episodes_});
    if (said != episodes_)
      throw corrupt("says " + std::to_string(said) + " episodes, but holds " +
                    std::to_string(episodes_));
    if (episodes_ > 0) list_columns(file_.openGroup(layout::episode_name(0)));
  }
  ~GroupedFile() override {
    (void)hdf5::guarded(path_, [this] { file_.close(); });
  }

  std::size_t size() const override { return static_cast<std::size_t>(episodes_); }

  Result<Episode> read(std::size_t index) override {
    Episode episode;
    auto good = hdf5::guarded(path_, [&] { episode = read_episode(index); });
    if (!good) return tl::unexpected(good.error());
    return episode;
  }

 private:
  void list_columns(const H5::Group& group) {
    for (const char* name : {layout::kObservations, layout::kActions, layout::kRewards,
                             layout::kTerminations, layout::kTruncations})
      list_column(group, name);
    for (const char* name : {layout::kObservations, layout::kExtras})
      if (hdf5::has_group(group, name)) {
        const H5::Group columns = group.openGroup(name);
        for (hsize_t i = 0; i < columns.getNumObjs(); ++i)
          list_column(columns, columns.getObjnameByIdx(i));
      }
  }

  void list_column(const H5::Group& group, const std::string& name) {
    if (!hdf5::has_dataset(group, name)) return;
    const StoredColumn column(group, name);
    info_.columns.push_back(column.name().substr(column.name().find('/') + 1) + " [" +
                            std::to_string(column.elements()) + "]");
  }

  // The end that the flags tell: only the last row may have one.
  EpisodeEnd flagged_end(const H5::Group& group, std::uint64_t steps,
                         const std::string& name) const {
    const StoredColumn terminations(group, layout::kTerminations);
    const StoredColumn truncations(group, layout::kTruncations);
    for (const StoredColumn* column : {&terminations, &truncations}) expect_rows(*column, steps);
    const auto terminated = terminations.read_flags(), truncated = truncations.read_flags();
    for (std::uint64_t row = 0; row + 1 < steps; ++row)
      if (terminated[row] != 0 || truncated[row] != 0)
        throw Hdf5Fault(ErrorCode::kInvalidEpisode,
                        name + " goes on after it ended in row " + std::to_string(row));
    return terminated.back() != 0 ? EpisodeEnd::kTerminated : EpisodeEnd::kTruncated;
  }

  EpisodeEnd end_of(const H5::Group& group, std::uint64_t steps, const std::string& name) const {
    const EpisodeEnd flagged = flagged_end(group, steps, name);
    const std::string said = hdf5::get(group, layout::kEnd, std::string());
    if (said.empty()) return flagged;
    const bool terminated = flagged == EpisodeEnd::kTerminated;
    if (terminated != (said == layout::kTerminated) ||
        (said != layout::kTerminated && said != layout::kTruncated && said != layout::kOpen))
      throw corrupt(name + " says its end is '" + said + "', its flags say otherwise");
    return said == layout::kOpen ? EpisodeEnd::kContinues : flagged;
  }

  void read_steps(const H5::Group& group, std::uint64_t rows, Chunk& steps) const {
    const StoredColumn rewards(group, layout::kRewards);
    expect_rows(rewards, rows);
    if (rewards.elements() != 1)
      throw corrupt("dataset '" + rewards.name() + "' has more than one number a row");
    const std::vector<float> read = rewards.read_floats(0, rows);
    steps.reward.insert(steps.reward.end(), read.begin(), read.end());
    steps.step.resize(signature_.step.size());
    for (std::size_t c = 0; c < signature_.step.size(); ++c) {
      const StoredColumn stored = step_column(group, signature_.step[c].name);
      expect_rows(stored, rows);
      expect_elements(stored, signature_.step[c]);
      stored.read(0, rows, signature_.step[c].dtype, steps.step[c]);
    }
  }

  void read_observations(const H5::Group& group, std::uint64_t rows, Chunk& steps) const {
    for (const Column& column : signature_.observation) {
      const StoredColumn stored =
          observation_column(group, layout::kObservations, signature_, column);
      expect_rows(stored, rows);
      expect_elements(stored, column);
      stored.read(0, rows, column.dtype, steps.observation.emplace_back());
    }
  }

  void read_policies(const H5::Group& group, std::uint64_t steps, Episode& episode) const {
    episode.policies = {PolicySpan{}};
    if (!hdf5::has_dataset(group, layout::kPolicies)) return;
    const StoredColumn stored(group, layout::kPolicies);
    std::vector<std::uint8_t> bytes;
    if (stored.elements() != 3 || stored.rows() < 1 || stored.rows() > steps)
      throw corrupt("dataset '" + stored.name() + "' is no table of policies");
    stored.read(0, stored.rows(), DType::kU64, bytes);
    std::vector<std::uint64_t> table(bytes.size() / sizeof(std::uint64_t));
    std::memcpy(table.data(), bytes.data(), bytes.size());
    episode.policies.clear();
    for (std::size_t i = 0; i < table.size(); i += 3) {
      const bool in_order = i == 0 ? table[0] == 0 : table[i] > table[i - 3];
      if (!in_order || table[i] >= steps ||
          table[i + 2] > std::numeric_limits<std::uint32_t>::max())
        throw corrupt("dataset '" + stored.name() + "' is no table of policies");
      episode.policies.push_back({static_cast<std::uint32_t>(table[i]), table[i + 1],
                                  static_cast<std::uint32_t>(table[i + 2])});
    }
  }

  Episode read_episode(std::size_t index) const {
    const std::string name = layout::episode_name(index);
    const H5::Group group = hdf5::open_group(file_, name);
    const std::uint64_t rows = StoredColumn(group, layout::kRewards).rows();
    if (rows == 0) throw Hdf5Fault(ErrorCode::kInvalidEpisode, name + " has no step");
    if (rows > layout::kMostSteps)
      throw corrupt(name + " has " + std::to_string(rows) + " steps; " +
                    std::to_string(layout::kMostSteps) + " at most are read");
    Episode episode;
    ChunkHeader& header = episode.steps.header;
    header.worker = narrowed<std::uint32_t>(group, "worker");
    header.incarnation = narrowed<std::uint32_t>(group, "incarnation");
    header.environment = narrowed<std::uint32_t>(group, "environment_index");
    header.episode = hdf5::get(group, "episode", std::uint64_t{index});
    header.first_step = narrowed<std::uint32_t>(group, layout::kFirstStep);
    header.spec_hash = signature_.spec_hash;
    header.end = end_of(group, rows, name);
    header.steps = static_cast<std::uint32_t>(rows) + (header.ends() ? 0 : 1);
    read_observations(group, rows + 1, episode.steps);
    read_steps(group, rows, episode.steps);
    if (!header.ends()) read_steps(hdf5::open_group(group, layout::kOpenStep), 1, episode.steps);
    read_policies(group, header.steps, episode);
    header.parameter_version = episode.policies.front().parameter_version;
    header.learner_epoch = episode.policies.front().learner_epoch;
    check_episode(episode, signature_, name);
    return episode;
  }

  fs::path path_;
  H5::H5File file_;
  Signature signature_;
  std::uint64_t episodes_ = 0;
};

EpisodeFileInfo read_info(const H5::H5File& file) {
  EpisodeFileInfo info;
  const std::string format = hdf5::get(file, "format", std::string());
  if (!format.empty() && format != layout::kFormat)
    throw corrupt("is of the format '" + format + "', which is not read");
  const auto version = hdf5::get(file, "format_version", layout::kFormatVersion);
  if (version != layout::kFormatVersion)
    throw corrupt("has format version " + std::to_string(version) +
                  "; this program reads version " + std::to_string(layout::kFormatVersion));
  info.layout = format.empty() ? "minari" : "troupe";
  info.environment = hdf5::get(file, "environment", std::string());
  info.spec_hash = hdf5::get(file, "spec_hash", std::uint64_t{0});
  info.n_step = hdf5::get(file, "n_step", std::uint64_t{0});
  info.steps_left_out = hdf5::get(file, "steps_left_out", std::uint64_t{0});
  info.policy_units = hdf5::get(file, layout::kActionUnits, std::string()) == layout::kPolicyUnits;
  return info;
}

std::unique_ptr<EpisodeFile> open(const fs::path& path, const Signature& signature) {
  H5::H5File file(path.string(), H5F_ACC_RDONLY);
  EpisodeFileInfo info = read_info(file);
  std::error_code ignored;
  info.bytes = fs::file_size(path, ignored);
  if (info.spec_hash != 0 && signature.spec_hash != 0 && info.spec_hash != signature.spec_hash)
    throw corrupt("was written for " +
                  (info.environment.empty() ? "another environment" : info.environment) +
                  " with spec hash " + std::to_string(info.spec_hash) + ", not " +
                  std::to_string(signature.spec_hash));
  const bool grouped = hdf5::has_group(file, layout::episode_name(0));
  if (grouped || info.layout == "troupe")
    return std::make_unique<GroupedFile>(path, file, signature, std::move(info));
  if (hdf5::has_dataset(file, layout::kRewards) && hdf5::has_dataset(file, layout::kTerminals))
    return open_flat_file(path, file, signature, std::move(info));
  throw corrupt(
      "has neither a group 'episode_0' (Minari's layout) nor datasets 'rewards' and 'terminals' "
      "(D4RL's): it is no file of episodes");
}

}  // namespace

Result<std::unique_ptr<EpisodeFile>> open_hdf5_file(const fs::path& path,
                                                    const Signature& signature) {
  std::unique_ptr<EpisodeFile> opened;
  if (auto good = hdf5::guarded(path, [&] { opened = open(path, signature); }); !good)
    return tl::unexpected(good.error());
  return opened;
}

}  // namespace troupe::replay
