// The episodes that a table's cut holds, joined from its chunks. Holds references to the chunks;
// one owner.
#pragma once

#include <memory>
#include <vector>

#include "replay/offline/episode.hpp"
#include "replay/table.hpp"

namespace troupe::replay {

class StoredEpisodes final : public EpisodeSource {
 public:
  // Steps that no item and no open window needs any more are left out; a gap ends one entry and
  // begins another. A single step without its next observation is no entry: it could never be an
  // item. In the order of the policies that acted, then of their workers. O(items + chunks log
  // chunks).
  explicit StoredEpisodes(const TableSnapshot& snapshot);

  std::size_t size() const override { return runs_.size(); }
  Result<Episode> read(std::size_t index) override;
  // Steps that belong to no entry.
  std::uint64_t steps_left_out() const { return left_out_; }

 private:
  struct Run {
    std::vector<PackedPtr> chunks;  // consecutive
    std::uint32_t first_row = 0;    // in the first one
  };
  void add_run(std::vector<PackedPtr> chunks, std::uint32_t first_needed, std::uint32_t reach);

  Signature signature_;
  std::vector<Run> runs_;
  std::uint64_t left_out_ = 0;
};

}  // namespace troupe::replay
