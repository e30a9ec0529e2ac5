// Reads episodes from HDF5 files: those of episode_writer.hpp, Minari's (one group an episode; its
// main_data.hdf5) and D4RL's (flat columns over all episodes, github.com/Farama-Foundation/D4RL,
// d4rl/offline_env.py). Nothing a file says is believed before it was checked: every size against
// the bytes at hand, every length against the others. One owner, one thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "envs/spec/result.hpp"
#include "replay/offline/episode.hpp"

namespace troupe::replay {

struct EpisodeFileInfo {
  std::string layout;           // "troupe" | "minari" | "d4rl"
  std::string environment;      // empty: the file does not say
  std::uint64_t spec_hash = 0;  // 0: the file does not say
  std::uint64_t n_step = 0;
  std::uint64_t steps_left_out = 0;
  std::uint64_t bytes = 0;  // of the file
  bool policy_units = false;
  std::vector<std::string> columns;  // "actions [1]": of the first episode, with shapes of a row
};

class EpisodeFile : public EpisodeSource {
 public:
  const EpisodeFileInfo& info() const { return info_; }
  bool actions_in_policy_units() const override { return info_.policy_units; }

 protected:
  EpisodeFileInfo info_;
};

// Columns are read as `signature` wants them: floats of any width become its floats, integers must
// fit, rows must have as many elements. With an empty signature only rewards and ends are read.
// kNotFound, kIo, or kCorrupt for a file that is cut, of none of the three layouts, of another
// environment (by its spec hash), or whose lengths disagree; messages name file and dataset.
//
// What an episode's end means, where the file is not one of ours:
//   Minari  terminated if the last termination is set, else truncated: its last observation is
//   there D4RL    a terminal closes an episode; so does a timeout, truncated if the file has
//           next_observations and open without them. What follows the last end is open.
//           After a terminal without next_observations the last observation is repeated: it is
//           multiplied by a discount of 0.
// read(): kNotFinite for an episode with NaN or infinity, kInvalidEpisode for one that is empty or
// goes on after its end; both leave the others readable.
Result<std::unique_ptr<EpisodeFile>> open_episode_file(const std::filesystem::path& path,
                                                       const Signature& signature);

// Whether the file begins like an HDF5 file; false too when it cannot be opened.
bool is_hdf5_file(const std::filesystem::path& path);

}  // namespace troupe::replay
