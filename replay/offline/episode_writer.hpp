// Writes episodes to an HDF5 file that Python reads with h5py alone, in the layout of Minari's HDF5
// storage (github.com/Farama-Foundation/Minari, minari/dataset/_storages/hdf5_storage.py): one
// group an episode. Chosen over D4RL's flat columns because those have no place for an episode's
// last observation, without which a truncated episode cannot bootstrap. One owner, one thread.
//
//   /            format "troupe-episodes" | format_version 1 | total_episodes | total_steps |
//                complete_episodes | steps_left_out | environment | spec_hash | n_step | discount |
//                action_units "policy" | action_low, action_high
//   /episode_I   id I | total_steps S | worker | incarnation | environment_index | episode |
//                first_step | end "terminated", "truncated" or "open" | complete 0 or 1
//     observations   [S + 1, ...] of their own type; a group of named columns if there are several
//     actions        f32 [S, A] in [-1, 1] per component (-1 is action_low, 1 is action_high), or
//                    i32 [S]
//     rewards        f32 [S]
//     terminations, truncations   bool [S]
//     extras/NAME    [S, ...] further columns of a step, if there are any
//     policies       u64 [P, 3]  row, parameter version, learner epoch: what acted from that row on
//     open_step/{actions, rewards, extras}   one row; only where end is "open"
//
// An episode whose head is missing has first_step > 0. One whose tail is missing has end "open":
// its last known observation closes it, `truncations` says so to readers that know no more, and the
// step taken there, whose next observation nobody knows, stands in open_step.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>

#include "envs/spec/result.hpp"
#include "replay/offline/episode.hpp"

namespace troupe::replay {

struct EpisodeWriteOptions {
  int deflate = 4;  // 0 to 9; 0 stores as it is
};

struct EpisodeTotals {
  std::uint64_t episodes = 0, complete = 0, steps = 0;
  std::uint64_t bytes = 0;  // of the file
};

class EpisodeWriter {
 public:
  // Opens PATH.writing; PATH appears with commit. kIo or kInvalidArgument, naming the file;
  // kNotFound or kUnavailable when the library that knows HDF5 cannot be loaded.
  static Result<std::unique_ptr<EpisodeWriter>> create(const std::filesystem::path& path,
                                                       const EpisodeFileHead& head,
                                                       const EpisodeWriteOptions& options = {});
  // Removes the unfinished file unless commit succeeded.
  virtual ~EpisodeWriter() = default;

  // The episode must fit the head's signature, and an open one must have two steps at least
  // (kInvalidArgument). One pass over its bytes.
  virtual Result<void> add(const Episode& episode) = 0;
  // Counts steps of the source that are in no episode, for the head.
  virtual void leave_out(std::uint64_t steps) = 0;
  // Writes the totals, syncs and renames.
  virtual Result<EpisodeTotals> commit() = 0;
};

}  // namespace troupe::replay
